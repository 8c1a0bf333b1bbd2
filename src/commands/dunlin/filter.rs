//! Which commands of the journal are meant, in words.

use crate::engine::kit::Filter;
use crate::engine::{Args, Error};

/// Reads `[COMMAND name] [KEY pattern] [CLIENT name] [ERRORS]`, in any order, as far as it goes.
pub(super) fn filter(args: &mut Args<'_>) -> Result<Filter, Error> {
    let mut filter = Filter::default();
    loop {
        let place = if args.take("ERRORS") {
            filter.errors = true;
            continue;
        } else if args.take("COMMAND") {
            &mut filter.command
        } else if args.take("KEY") {
            &mut filter.key
        } else if args.take("CLIENT") {
            &mut filter.client
        } else {
            return Ok(filter);
        };
        *place = Some(args.word()?.to_vec());
    }
}
