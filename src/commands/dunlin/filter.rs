//! Parses the filters of journal commands.

use crate::engine::state::kit::Filter;
use crate::engine::{Args, Error, KitError, Table, shown};

/// Reads `[COMMAND name] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]`, in any order, as far as it goes.
pub(super) fn filter(table: &Table, args: &mut Args<'_>) -> Result<Filter, Error> {
    let mut filter = Filter::default();
    loop {
        if args.take("ERRORS") {
            filter.errors = true;
        } else if args.take("REDIRECTED") {
            filter.redirected = true;
        } else if args.take("COMMAND") {
            filter.command = Some(command(table, args)?);
        } else if args.take("KEY") {
            filter.key = Some(args.word()?.to_vec());
        } else if args.take("CLIENT") {
            filter.client = Some(args.word()?.to_vec());
        } else {
            return Ok(filter);
        }
    }
}

/// The name of an existing command: a filter for an unknown name would match nothing, and the test would pass.
pub(super) fn command(table: &Table, args: &mut Args<'_>) -> Result<Vec<u8>, Error> {
    let name = args.word()?;
    match table.known(name) {
        Some(_) => Ok(name.to_vec()),
        None => Err(KitError::NoCommand(shown(name)).into()),
    }
}
