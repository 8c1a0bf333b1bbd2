//! DUNLIN FEED: sends a client each command when it has ended, with its reply.

use super::filter::filter;
use super::{ROW, check_reads_all, explained};
use crate::engine::exec::operations;
use crate::engine::{Args, Arity, Command, Ctx, Error, KitError};
use crate::resp::Protocol;

pub(super) const FEED: Command = Command {
    name: "FEED",
    syntax: "which:<OFF|[COMMAND command] [KEY pattern] [CLIENT name] [ERRORS] [REDIRECTED]>",
    arity: Arity::AtLeast(2),
    cost: "O(1), and O(N) for each command from then on, N being its words and its reply",
    about: "Sends each command from now on as a push message when it has ended, with its client and its reply.",
    run: |cx, args| explained(&FEED, feed(cx, args)),
    ..ROW
};

fn feed(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    if args.take("OFF") {
        args.end()?;
        operations::end_feed(cx);
    } else {
        let filter = filter(cx.table(), &mut args)?;
        args.end()?;
        check_reads_all(cx, &args)?;
        if cx.session().protocol == Protocol::Resp2 {
            return Err(KitError::NeedsResp3.into());
        }
        operations::start_feed(cx, filter);
    }
    cx.reply().ok();
    Ok(())
}
