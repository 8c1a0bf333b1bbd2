//! DUNLIN MEASURE: declares the queues, sets and sorted sets that the metrics report on; lists and removes them.

use super::{ROW, explained};
use crate::engine::state::measures::Measure;
use crate::engine::{Args, Arity, Command, Ctx, Error, KitError, says};

pub(super) const MEASURE: Command = Command {
    name: "MEASURE",
    syntax: "action:<queue:<QUEUE name main [PROCESSING processing] [FAILED failed] [DATABASE database]>|\
             set:<SET name main [DATABASE database]>|\
             zset:<ZSET name main [unit:<SECONDS|MILLISECONDS>] [PROCESSING processing] [DATABASE database]>|\
             REMOVE name|LIST|CLEAR>",
    arity: Arity::AtLeast(3),
    cost: "O(N), N being the measures",
    about: "Declares a queue, a set or a sorted set on which the metrics report; of the selected database unless it \
            names another.",
    run: |cx, args| explained(&MEASURE, measure(cx, args)),
    ..ROW
};

fn measure(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    match args.peek() {
        Some(word) if says(word, "REMOVE") => {
            args.word()?;
            remove(cx, args)
        }
        Some(word) if says(word, "LIST") && args.left() == 1 => {
            list(cx);
            Ok(())
        }
        Some(word) if says(word, "CLEAR") && args.left() == 1 => {
            cx.observers_mut().measures = None;
            cx.reply().ok();
            Ok(())
        }
        _ => declare(cx, args),
    }
}

fn declare(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let measure = Measure::parse(args.rest(), cx.database_index()).ok_or(Error::Syntax)?;
    if measure.database >= cx.engine().databases.count() {
        return Err(Error::DatabaseOutOfRange);
    }
    if !cx.observers_mut().measures.get_or_insert_default().add(measure) {
        return Err(KitError::TooManyMeasures.into());
    }
    cx.reply().ok();
    Ok(())
}

fn remove(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let name = args.word()?;
    args.end()?;
    let measures = &mut cx.observers_mut().measures;
    let was_there = measures.as_mut().is_some_and(|measures| measures.remove(name));
    measures.take_if(|measures| measures.iter().len() == 0);
    cx.reply().integer(was_there.into());
    Ok(())
}

fn list(cx: &mut Ctx<'_>) {
    let (engine, reply) = cx.engine_and_reply();
    let measures = engine.observers.measures.as_ref();
    let lines: Vec<String> =
        measures.iter().flat_map(|all| all.iter()).map(|(measure, _)| measure.to_string()).collect();
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.bulk(line.as_bytes()));
}
