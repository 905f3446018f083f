"""`foliot incidents`: what is wrong, since when, and who has been told."""

import itertools
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.paging import PAGE, collect, page_options, tell_of_more
from foliot.cli.show import json_option, one_line, plain, print_fields, print_json, print_table, some, status_text
from foliot.cli.times import DURATION, read_clock, show_local, show_moment, show_relative
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire.alerts import IncidentInfo, NoticeInfo

JOBS_SHOWN = 10


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list", "get": "show", "acknowledge": "ack"},
    examples="""
    foliot incidents
    foliot incidents show i_2x9k4
    foliot incidents ack i_2x9k4
    foliot incidents silence i_2x9k4 --for 1h
    """,
)
def incidents() -> None:
    """What is wrong, by the rules of 'foliot alerts'. Without a command it lists them."""


@incidents.command(
    name="list",
    examples="""
    foliot incidents list
    foliot incidents list --open
    foliot incidents list --all --json
    """,
)
@click.option("--open", "only_open", is_flag=True, help="Only those that are not over.")
@page_options
@json_option
@with_client
def list_(client: "Client", only_open: bool, limit: int, everything: bool, as_json: bool) -> None:
    """List what is or was wrong, newest first."""
    most = None if everything else limit
    if only_open:
        still = (each for each in client.all_incidents(page_size=PAGE) if each.status == "open")
        found = list(itertools.islice(still, None if most is None else most + 1))
        found, more = found[:most], most is not None and len(found) > most
    else:
        found, more = collect(client.incident_page, most)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("INCIDENT", "STATUS", "RULE", "WHAT", "ABOUT", "COUNT", "SINCE", "LAST"),
        [
            (
                each.incident_id,
                status_text(state_of(each)),
                each.rule,
                each.kind,
                one_line(each.subject),
                f"{each.count:,}",
                show_relative(each.opened_time, now),
                show_relative(each.last_seen, now),
            )
            for each in found
        ],
        empty="nothing is wrong" if only_open else "nothing is wrong, and nothing was",
    )
    if more:
        tell_of_more(len(found))


@incidents.command(examples="foliot incidents show i_2x9k4\nfoliot incidents show i_2x9k4 --json")
@click.argument("incident_id", metavar="INCIDENT")
@json_option
@with_client
def show(client: "Client", incident_id: str, as_json: bool) -> None:
    """Show one incident: what is wrong, of which jobs, and what was told to whom."""
    found = client.incident(incident_id)
    if as_json:
        print_json(found)
    else:
        print_incident(found)


@incidents.command(examples="foliot incidents ack i_2x9k4")
@click.argument("incident_ids", nargs=-1, required=True, metavar="INCIDENT...")
@json_option
@with_client
def ack(client: "Client", incident_ids: tuple[str, ...], as_json: bool) -> None:
    """Say that you see to it: nothing more is told until it is over."""
    change_each(incident_ids, client.acknowledge_incident, as_json=as_json, tell=_changed_text)


@incidents.command(examples="foliot incidents silence i_2x9k4 --for 1h")
@click.argument("incident_ids", nargs=-1, required=True, metavar="INCIDENT...")
@click.option("--for", "duration", type=DURATION, default="1h", show_default=True, help="For how long.")
@json_option
@with_client
def silence(client: "Client", incident_ids: tuple[str, ...], duration: float | str, as_json: bool) -> None:
    """Tell nothing about it for a while."""

    def change(incident_id: str) -> "IncidentInfo":
        return client.silence_incident(incident_id, duration)

    change_each(incident_ids, change, as_json=as_json, tell=_changed_text)


@incidents.command(examples="foliot incidents resolve i_2x9k4")
@click.argument("incident_ids", nargs=-1, required=True, metavar="INCIDENT...")
@json_option
@with_client
def resolve(client: "Client", incident_ids: tuple[str, ...], as_json: bool) -> None:
    """Say that it is over. Where it happens again, it is a new one."""
    change_each(incident_ids, client.resolve_incident, as_json=as_json, tell=_changed_text)


def state_of(incident: "IncidentInfo") -> str:
    if incident.status == "resolved":
        return "resolved"
    if incident.silenced_until is not None and incident.silenced_until > read_clock():
        return "silenced"
    return "open" if incident.acknowledged_by is None else "acknowledged"


def print_incident(incident: "IncidentInfo") -> None:
    now = read_clock()
    by, at = incident.acknowledged_by, incident.acknowledged_time
    print_fields(
        (
            ("incident", incident.incident_id),
            ("status", status_text(state_of(incident))),
            ("rule", incident.rule),
            ("what", incident.kind),
            ("about", one_line(incident.subject)),
            ("detail", plain(incident.detail) or None),
            ("count", f"{incident.count:,}"),
            ("since", show_moment(incident.opened_time, now)),
            ("last seen", show_moment(incident.last_seen, now)),
            ("over", None if incident.resolved_time is None else show_moment(incident.resolved_time, now)),
            ("jobs", one_line(some(incident.jobs, JOBS_SHOWN)) or None),
            ("channels", one_line(", ".join(incident.channels)) or None),
            ("acknowledged", None if by is None else f"by {one_line(by)}, {show_moment(at, now)}"),
            ("silenced", None if incident.silenced_until is None else f"until {show_local(incident.silenced_until)}"),
            *(("told", _notice_text(notice)) for notice in incident.notices),
            *(("trouble", f"{one_line(name)}: {one_line(why)}") for name, why in incident.trouble_telling.items()),
        )
    )


def _notice_text(notice: "NoticeInfo") -> str:
    sent = f"to {', '.join(notice.sent)}" if notice.sent else "to nobody"
    failed = "".join(f"; not to {name}: {why}" for name, why in notice.failed.items())
    return one_line(f"{notice.notice}, {show_local(notice.time)}, {sent}{failed}")


def _changed_text(incident: "IncidentInfo") -> str:
    return f"{state_of(incident)}, {incident.kind} of {one_line(incident.subject)}"
