//! Parameters of our own for what is served over HTTP. CONFIG GET shows them only by name.

use super::PORT;
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::{Page, Settings};

pub(super) const ROWS: &[Parameter] = &[
    Parameter::words(
        "page-bind",
        words::addresses,
        Backing::Field(|s| s.process.page.bind.join(" "), |s, names| of(s).bind = names_in(&names)),
    )
    .at_start()
    .hidden(),
    Parameter::words(
        "page-host",
        words::any,
        Backing::Field(|s| s.process.page.hosts.join(" "), |s, names| of(s).hosts = names_in(&names)),
    )
    .at_start()
    .hidden(),
    Parameter::number(
        "page-port",
        -1,
        PORT,
        Backing::Field(|s| s.process.page.port.map_or(-1, i64::from), |s, port| of(s).port = u16::try_from(port).ok()),
    )
    .at_start()
    .hidden(),
    Parameter::switch("page-token", Backing::Field(|s| s.process.page.has_token, |s, on| of(s).has_token = on))
        .at_start()
        .hidden(),
];

fn names_in(text: &str) -> Vec<String> {
    text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn of(settings: &mut Settings) -> &mut Page {
    &mut settings.process_mut().page
}
