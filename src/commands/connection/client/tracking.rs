//! CLIENT TRACKING and related commands: a client declares what it caches.
//!
//! [`crate::engine::exec::tracking`] implements the tracking.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::SUBCOMMAND;
use crate::engine::exec::operations;
use crate::engine::state::tracking::{Choice, Mode};
use crate::engine::{Args, Arity, Command, Ctx, Error, SessionId, TrackingError, shown};

pub(super) const TRACKING: Command = Command {
    name: "TRACKING",
    syntax: "status:<ON|OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] \
             [NOLOOP]",
    arity: Arity::AtLeast(3),
    since: "6.0.0",
    cost: "O(1). Some options may introduce additional complexity.",
    about: "Sets client-side caching: invalidations for keys that this connection has read.",
    run: tracking,
    ..SUBCOMMAND
};

/// The options of CLIENT TRACKING after ON or OFF.
#[derive(Default)]
struct Options<'a> {
    redirect: Option<SessionId>,
    prefixes: Vec<&'a [u8]>,
    broadcasts: bool,
    opts_in: bool,
    opts_out: bool,
    no_loop: bool,
}

impl<'a> Options<'a> {
    fn parse(cx: &mut Ctx<'_>, mut args: Args<'a>) -> Result<Options<'a>, Error> {
        let mut options = Options::default();
        while !args.is_empty() {
            if args.take_with("REDIRECT", 1) {
                if options.redirect.is_some() {
                    return Err(TrackingError::RedirectsTwice.into());
                }
                options.redirect = redirection(cx, args.integer()?)?;
            } else if args.take("BCAST") {
                options.broadcasts = true;
            } else if args.take("OPTIN") {
                options.opts_in = true;
            } else if args.take("OPTOUT") {
                options.opts_out = true;
            } else if args.take("NOLOOP") {
                options.no_loop = true;
            } else if args.take_with("PREFIX", 1) {
                options.prefixes.push(args.word()?);
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    /// The tracking mode, if these options are compatible with each other and with the client's mode `before`.
    fn choice(&self, before: Option<&Mode>) -> Result<Choice, Error> {
        if !self.broadcasts && !self.prefixes.is_empty() {
            return Err(TrackingError::PrefixWithoutBroadcast.into());
        }
        if before.is_some_and(|before| before.broadcasts != self.broadcasts) {
            return Err(TrackingError::BroadcastSwitched.into());
        }
        if self.broadcasts && (self.opts_in || self.opts_out) {
            return Err(TrackingError::BroadcastWithChoice.into());
        }
        if self.opts_in && self.opts_out {
            return Err(TrackingError::BothChoices.into());
        }
        let choice = match (self.opts_in, self.opts_out) {
            (true, _) => Choice::OnlyNamed,
            (_, true) => Choice::UnlessNamed,
            _ => Choice::All,
        };
        let is_switched = |before: &Mode| ![before.choice, choice].contains(&Choice::All) && before.choice != choice;
        if before.is_some_and(is_switched) { Err(TrackingError::ChoiceSwitched.into()) } else { Ok(choice) }
    }

    /// Whether prefixes overlap with existing ones or with each other.
    fn check_prefixes(&self, before: Option<&Mode>) -> Result<(), Error> {
        let among = first_overlap(&self.prefixes);
        let until = among.map_or(self.prefixes.len(), |index| index + 1);
        for prefix in &self.prefixes[..until] {
            if let Some(existing) = before.and_then(|before| overlapping(&before.prefixes, prefix)) {
                return Err(TrackingError::PrefixExists { given: shown(prefix), existing: shown(existing) }.into());
            }
        }
        let Some(index) = among else { return Ok(()) };
        let prefix = self.prefixes[index];
        let other = self.prefixes[index + 1..].iter().find(|other| overlap(other, prefix)).unwrap_or(&prefix);
        Err(TrackingError::PrefixesOverlap { given: shown(prefix), other: shown(other) }.into())
    }
}

/// The first existing prefix of a client that overlaps with a new one. Existing ones do not overlap with each other,
/// except for the empty prefix; so it is that, or the last one not after the new one, or the first one not before it.
fn overlapping<'p>(prefixes: &'p BTreeSet<Arc<[u8]>>, prefix: &[u8]) -> Option<&'p [u8]> {
    let before = prefixes.range::<[u8], _>((Bound::Unbounded, Bound::Included(prefix))).next_back();
    let behind = prefixes.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded)).next();
    let empty = prefixes.first().filter(|first| first.is_empty());
    empty.into_iter().chain(before).chain(behind).map(|known| &**known).find(|known| overlap(known, prefix))
}

/// The position of the first prefix that overlaps with a later one. In byte order a prefix comes right before the texts
/// that begin with it, so one pass with a stack of open prefixes finds all overlaps.
fn first_overlap(prefixes: &[&[u8]]) -> Option<usize> {
    let mut places: Vec<usize> = (0..prefixes.len()).collect();
    places.sort_by_key(|&place| prefixes[place]);
    let (mut open, mut first): (Vec<usize>, Option<usize>) = (Vec::new(), None);
    for place in places {
        while open.pop_if(|open| !prefixes[place].starts_with(prefixes[*open])).is_some() {}
        if let Some(&outer) = open.last() {
            let earlier = outer.min(place);
            first = Some(first.map_or(earlier, |first| first.min(earlier)));
        }
        open.push(place);
    }
    first
}

/// The session with that id, 0 for none.
fn redirection(cx: &mut Ctx<'_>, number: i64) -> Result<Option<SessionId>, Error> {
    let found = u64::try_from(number).ok().and_then(|number| cx.engine().sessions.find(number));
    Ok(Some(found.ok_or(TrackingError::RedirectsNowhere)?))
}

fn overlap(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn tracking(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let (on, off) = (args.take("ON"), args.take("OFF"));
    if !on && !off {
        args.word()?;
    }
    let options = Options::parse(cx, args)?;
    if on {
        let before = cx.session().tracking.as_deref();
        let choice = options.choice(before)?;
        options.check_prefixes(before)?;
        let (redirect, broadcasts, no_loop) = (options.redirect, options.broadcasts, options.no_loop);
        let prefixes = prefixes_of(&options);
        operations::track(cx, Mode { redirect, broadcasts, choice, no_loop, prefixes, ..Mode::default() });
    } else if off {
        operations::untrack(cx);
    } else {
        return Err(Error::Syntax);
    }
    cx.reply().ok();
    Ok(())
}

/// The requested prefixes; without any, the empty one, with which every key begins.
fn prefixes_of(options: &Options<'_>) -> BTreeSet<Arc<[u8]>> {
    if options.broadcasts && options.prefixes.is_empty() {
        return BTreeSet::from([Arc::from(*b"")]);
    }
    options.prefixes.iter().map(|&prefix| prefix.into()).collect()
}

pub(super) const CACHING: Command = Command {
    name: "CACHING",
    syntax: "mode:<YES|NO>",
    arity: Arity::Exactly(3),
    since: "6.0.0",
    about: "Sets whether the keys of the next command are tracked (OPTIN, OPTOUT).",
    run: caching,
    ..SUBCOMMAND
};

fn caching(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let Some(mode) = cx.session_mut().tracking.as_deref_mut() else {
        return Err(TrackingError::CachingWithoutTracking.into());
    };
    let (yes, no) = (args.take("YES"), args.take("NO"));
    match (yes, no, mode.choice) {
        (true, _, Choice::OnlyNamed) | (_, true, Choice::UnlessNamed) => mode.is_exception = true,
        (true, ..) => return Err(TrackingError::CachingYesWithoutOptin.into()),
        (_, true, _) => return Err(TrackingError::CachingNoWithoutOptout.into()),
        _ => return Err(Error::Syntax),
    }
    cx.reply().ok();
    Ok(())
}

pub(super) const GETREDIR: Command = Command {
    name: "GETREDIR",
    since: "6.0.0",
    about: "Returns the id of the connection that gets the invalidations: 0 for none, -1 without tracking.",
    run: |cx, _| {
        let redirect = redirect_number(cx);
        cx.reply().integer(redirect);
        Ok(())
    },
    ..SUBCOMMAND
};

fn redirect_number(cx: &Ctx<'_>) -> i64 {
    let redirect = |mode: &Mode| mode.redirect.map_or(0, |receiver| receiver.number as i64);
    cx.session().tracking.as_deref().map_or(-1, redirect)
}

pub(super) const TRACKINGINFO: Command = Command {
    name: "TRACKINGINFO",
    since: "6.2.0",
    about: "Returns the state of key tracking of this connection.",
    run: trackinginfo,
    ..SUBCOMMAND
};

fn trackinginfo(cx: &mut Ctx<'_>, _: Args<'_>) -> Result<(), Error> {
    let redirect = redirect_number(cx);
    let mode = cx.session().tracking.clone();
    let flags = mode.as_deref().map_or_else(|| vec!["off"], flags_of);
    let prefixes = mode.map(|mode| mode.prefixes).unwrap_or_default();
    let reply = cx.reply();
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(redirect);
    reply.bulk(b"prefixes");
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}

fn flags_of(mode: &Mode) -> Vec<&'static str> {
    let flags = [
        (true, "on"),
        (mode.broadcasts, "bcast"),
        (mode.choice == Choice::OnlyNamed, "optin"),
        (mode.choice == Choice::OnlyNamed && mode.is_exception, "caching-yes"),
        (mode.choice == Choice::UnlessNamed, "optout"),
        (mode.choice == Choice::UnlessNamed && mode.is_exception, "caching-no"),
        (mode.no_loop, "noloop"),
        (mode.is_broken, "broken_redirect"),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
}
