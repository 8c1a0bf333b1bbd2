//! CLIENT KILL in its two forms: one address, or a list of filters that must all match.

use either::Either;

use super::list::ClientType;
use crate::engine::exec::operations;
use crate::engine::{Args, Ctx, Error, Now, Session, SessionId, shown};
use crate::value::number;

pub(super) fn kill(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    if args.left() == 1 { kill_address(cx, args) } else { kill_matching(cx, args) }
}

fn kill_address(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let address = args.word()?;
    let found = cx.engine().sessions.iter().find(|session| session.origin.address.as_bytes() == address);
    let id = found.map(|session| session.id).ok_or(Error::NoSuchClient)?;
    close(cx, id);
    cx.reply().ok();
    Ok(())
}

fn kill_matching(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<(), Error> {
    let filter = Filter::parse(cx, args)?;
    let (own, now) = (cx.session().id, cx.now());
    let sessions = &cx.engine().sessions;
    let candidates = match filter.id {
        Some(number) => Either::Left(sessions.find(number).and_then(|id| sessions.get(id)).into_iter()),
        None => Either::Right(sessions.iter()),
    };
    let matching = candidates.filter(|session| filter.matches(session, own, now));
    let ids: Vec<SessionId> = matching.map(|session| session.id).collect();
    for id in &ids {
        close(cx, *id);
    }
    cx.reply().count(ids.len());
    Ok(())
}

fn close(cx: &mut Ctx<'_>, id: SessionId) {
    if id == cx.session().id {
        cx.session_mut().closing = true;
    } else {
        operations::close_session(cx, id);
    }
}

struct Filter<'a> {
    id: Option<u64>,
    kind: Option<ClientType>,
    user: Option<&'a [u8]>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    least_age_s: Option<u64>,
    skip_me: bool,
}

impl<'a> Filter<'a> {
    fn parse(cx: &mut Ctx<'_>, mut args: Args<'a>) -> Result<Filter<'a>, Error> {
        let mut filter = Filter {
            id: None,
            kind: None,
            user: None,
            address: None,
            local_address: None,
            least_age_s: None,
            skip_me: true,
        };
        while !args.is_empty() {
            if args.take_with("ID", 1) {
                filter.id = Some(positive(args.word()?).ok_or(Error::ClientIdNotPositive)?);
            } else if args.take_with("MAXAGE", 1) {
                let age = args.word()?;
                number::parse_i64(age).ok_or(Error::MaxAgeNotAnInteger)?;
                filter.least_age_s = Some(positive(age).ok_or(Error::MaxAgeNotPositive)?);
            } else if args.take_with("TYPE", 1) {
                filter.kind = Some(ClientType::parse(args.word()?)?);
            } else if args.take_with("ADDR", 1) {
                filter.address = Some(args.word()?);
            } else if args.take_with("LADDR", 1) {
                filter.local_address = Some(args.word()?);
            } else if args.take_with("USER", 1) {
                filter.user = Some(known_user(cx, args.word()?)?);
            } else if args.take_with("SKIPME", 1) {
                filter.skip_me = yes_or_no(&mut args)?;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(filter)
    }

    fn matches(&self, session: &Session, own: SessionId, now: Now) -> bool {
        let age_s = now.since_us(session.connected) / 1_000_000;
        self.id.is_none_or(|id| id == session.id.number)
            && self.kind.is_none_or(|kind| kind == ClientType::of(session))
            && self.user.is_none_or(|user| !session.origin.is_primary && user == session.user.name())
            && self.address.is_none_or(|address| address == session.origin.address.as_bytes())
            && self.local_address.is_none_or(|address| address == session.origin.local_address.as_bytes())
            && self.least_age_s.is_none_or(|least| age_s >= least)
            && !(self.skip_me && session.id == own)
            && (!session.keeps_world || self.names_one())
    }

    /// Whether it selects a client by its id or its address, rather than by what many have in common.
    fn names_one(&self) -> bool {
        self.id.is_some() || self.address.is_some()
    }
}

fn yes_or_no(args: &mut Args<'_>) -> Result<bool, Error> {
    match (args.take("YES"), args.take("NO")) {
        (false, false) => Err(Error::Syntax),
        (yes, _) => Ok(yes),
    }
}

fn positive(word: &[u8]) -> Option<u64> {
    number::parse_i64(word).and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0)
}

fn known_user<'a>(cx: &mut Ctx<'_>, name: &'a [u8]) -> Result<&'a [u8], Error> {
    let is_known = cx.engine().acl.users.get(name).is_some();
    if is_known { Ok(name) } else { Err(Error::NoSuchUser(shown(name))) }
}
