"""When the runs of a schedule are due: triggers, zones, calendars, and the rules of the clock's changes. Pure.

`fields` makes a `Timetable` from the fields of the API, `due_times` says what is due (next, previous, all, how many),
`preview` and `describe` say it to people. `cron`, `interval` and `recurrence` are the triggers, `calendar` knows
business days and holidays, and `wall_time` with `zone` turns what a clock on the wall shows into instants: where a
cron's minute or hour is `*`, and for `every`, real time is followed; otherwise a wall time is due once, also when it
is skipped or comes twice. Zones come from the tzdata package, so that all machines agree.
"""
