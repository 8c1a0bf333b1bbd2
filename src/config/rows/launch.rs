//! Parameters of our own for programs that start a server for themselves: how they learn where it is, and how it ends
//! with them. CONFIG GET shows them only by name. The program goes by them; embedded servers have none of them.

use super::INT;
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::{EndWith, Launch, Settings};

pub(super) const ROWS: &[Parameter] = &[
    Parameter::switch("announce", Backing::Field(|s| s.process.launch.is_announced, |s, on| of(s).is_announced = on))
        .at_start()
        .hidden(),
    Parameter::word(
        "end-with",
        words::end_with,
        // The word was checked before, so it means something.
        Backing::Field(
            |s| s.process.launch.end_with.name(),
            // Each line adds to those before, so that what a launcher sets leaves what its user has set.
            |s, word| of(s).end_with.add(EndWith::named(&word).unwrap_or_default()),
        ),
    )
    .at_start()
    .hidden(),
    Parameter::switch(
        "free-port",
        Backing::Field(|s| s.process.launch.uses_free_port, |s, on| of(s).uses_free_port = on),
    )
    .at_start()
    .hidden(),
    Parameter::number(
        "idle-end",
        0,
        INT,
        Backing::Field(|s| s.process.launch.idle_end_s.into(), |s, seconds| of(s).idle_end_s = seconds as u32),
    )
    .at_start()
    .hidden(),
    Parameter::text(
        "port-file",
        Backing::Field(|s| s.process.launch.port_file.clone(), |s, path| of(s).port_file = path),
    )
    .at_start()
    .hidden(),
];

fn of(settings: &mut Settings) -> &mut Launch {
    &mut settings.process_mut().launch
}
