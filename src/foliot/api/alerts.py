"""The calls on alert rules, incidents and channels."""

from foliot.api.call import Answer, Call
from foliot.api.headers import etag, if_match
from foliot.api.jobs import NoFields
from foliot.api.paging import paged
from foliot.api.query import PageQuery, given
from foliot.wire import (
    BASE_PATH,
    ChannelBody,
    ChannelInfo,
    ChannelUpdateBody,
    IncidentInfo,
    RuleBody,
    RuleFields,
    RuleInfo,
    SilenceBody,
)


async def create_rule(call: Call[RuleBody, None]) -> Answer:
    rule = await call.services.alert_rules.create(call.body, call.caller)
    return Answer(rule, headers=((b"location", f"{BASE_PATH}/alerts/{rule.name}".encode()), etag(rule.version)))


async def list_rules(call: Call[None, None]) -> Answer:
    return Answer(await call.services.alert_rules.list(call.caller))


async def read_rule(call: Call[None, None]) -> Answer:
    return _answer(await call.services.alert_rules.read(call.names["rule"], call.caller))


async def update_rule(call: Call[RuleFields, None]) -> Answer:
    rule = await call.services.alert_rules.update(
        call.names["rule"], call.body, if_match=if_match(call.headers), caller=call.caller
    )
    return _answer(rule)


async def delete_rule(call: Call[None, None]) -> Answer:
    await call.services.alert_rules.delete(call.names["rule"], call.caller)
    return Answer(None)


async def list_incidents(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.alerts.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def read_incident(call: Call[None, None]) -> Answer:
    return _answer(await call.services.alerts.read(call.names["incident_id"], call.caller))


async def acknowledge_incident(call: Call[NoFields, None]) -> Answer:
    return _answer(await call.services.alerts.acknowledge(call.names["incident_id"], call.caller))


async def silence_incident(call: Call[SilenceBody, None]) -> Answer:
    return _answer(await call.services.alerts.silence(call.names["incident_id"], call.body, call.caller))


async def resolve_incident(call: Call[NoFields, None]) -> Answer:
    return _answer(await call.services.alerts.resolve(call.names["incident_id"], call.caller))


async def create_channel(call: Call[ChannelBody, None]) -> Answer:
    channel = await call.services.channels.create(call.body, call.caller)
    headers = ((b"location", f"{BASE_PATH}/channels/{channel.name}".encode()), etag(channel.version))
    return Answer(channel, headers=headers)


async def list_channels(call: Call[None, None]) -> Answer:
    return Answer(await call.services.channels.list(call.caller))


async def read_channel(call: Call[None, None]) -> Answer:
    return _answer(await call.services.channels.read(call.names["channel"], call.caller))


async def update_channel(call: Call[ChannelUpdateBody, None]) -> Answer:
    channel = await call.services.channels.update(
        call.names["channel"], call.body, if_match=if_match(call.headers), caller=call.caller
    )
    return _answer(channel)


async def delete_channel(call: Call[None, None]) -> Answer:
    await call.services.channels.delete(call.names["channel"], call.caller)
    return Answer(None)


async def try_channel(call: Call[NoFields, None]) -> Answer:
    return Answer(await call.services.channels.test(call.names["channel"], call.caller))


def _answer(shown: RuleInfo | ChannelInfo | IncidentInfo) -> Answer:
    return Answer(shown, headers=(etag(shown.version),))
