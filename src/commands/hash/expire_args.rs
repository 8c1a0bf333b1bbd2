//! Arguments of the commands about deadlines of fields: times, and the words `FIELDS numfields field ...`.

use super::remove::HDEL_EVENT;
use crate::engine::{Args, Changed, Ctx, Error, Event};
use crate::value::hash::Hash;
use crate::value::number;

/// The event for fields that got a deadline.
const HEXPIRE_EVENT: Event = Event::hash("hexpire");
/// The event for fields that lost their deadline.
pub(super) const HPERSIST_EVENT: Event = Event::hash("hpersist");

/// The last millisecond that a field can live to.
const LAST_MS: i64 = (1 << 46) - 1;

/// The unit and the origin of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The unit in milliseconds.
    pub(super) ms: i64,
    /// The time is relative to now, not to the Unix epoch.
    pub(super) from_now: bool,
}

impl Unit {
    pub(super) const SECONDS: Unit = Unit { ms: 1000, from_now: true };
    pub(super) const MILLISECONDS: Unit = Unit { ms: 1, from_now: true };
    pub(super) const UNIX_SECONDS: Unit = Unit { ms: 1000, from_now: false };
    pub(super) const UNIX_MILLISECONDS: Unit = Unit { ms: 1, from_now: false };

    /// Parses an option that names a unit, if the next word is one.
    pub(super) fn take(args: &mut Args<'_>) -> Option<Unit> {
        let options = [
            ("EX", Unit::SECONDS),
            ("PX", Unit::MILLISECONDS),
            ("EXAT", Unit::UNIX_SECONDS),
            ("PXAT", Unit::UNIX_MILLISECONDS),
        ];
        options.into_iter().find(|(name, _)| args.take(name)).map(|(_, unit)| unit)
    }

    /// Parses `word` into a deadline; the error names `command`.
    ///
    /// # Errors
    /// The word is not an integer, is negative, or is too far in the future.
    pub(super) fn moment(self, word: &[u8], cx: &Ctx<'_>, command: &'static str) -> Result<Moment, Error> {
        let number = number::parse_i64(word).ok_or(Error::NotAnInteger)?;
        if number < 0 {
            return Err(Error::NegativeExpireTime);
        }
        let origin_ms = if self.from_now { cx.now_ms() } else { 0 };
        let deadline_ms = number.checked_mul(self.ms).and_then(|ms| ms.checked_add(origin_ms));
        let deadline_ms = deadline_ms.filter(|&deadline_ms| deadline_ms <= LAST_MS);
        let deadline_ms = deadline_ms.ok_or(Error::InvalidExpireTime(command))?;
        Ok(Moment { deadline_ms, past_ms: cx.engine().timing.past_ms() })
    }
}

/// A deadline for fields, and the latest one that has passed, both in unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) deadline_ms: i64,
    past_ms: i64,
}

impl Moment {
    /// Whether the deadline has already passed: then the fields are deleted at once.
    pub(super) fn is_past(self) -> bool {
        self.deadline_ms <= self.past_ms
    }

    /// The event for a hash whose fields get this deadline.
    pub(super) fn event(self) -> Event {
        if self.is_past() { HDEL_EVENT } else { HEXPIRE_EVENT }
    }

    /// Sets a field's deadline, or deletes the field if it has passed. Returns whether the field exists.
    pub(super) fn apply(self, hash: &mut Hash, field: &[u8]) -> bool {
        if self.is_past() { hash.remove(field) } else { hash.set_deadline(field, Some(self.deadline_ms)) }
    }

    /// Counts fields that got this deadline as expired if it has passed.
    pub(super) fn count_ended(self, cx: &mut Ctx<'_>, fields: usize) {
        if self.is_past() {
            cx.stats_mut().expired_fields += fields as u64;
        }
    }

    /// Sets the deadline of fields that were just set, and which count as changes already.
    pub(super) fn apply_all<'f>(self, hash: &mut Hash, fields: impl Iterator<Item = &'f [u8]>) -> Changed<()> {
        hash.make_timed();
        fields.for_each(|field| _ = self.apply(hash, field));
        Changed::by(0, ()).announced()
    }
}

/// Parses `FIELDS` and the number of fields, which must be all remaining words; a number that is not positive gives the
/// error `not_positive`.
pub(super) fn take_fields(args: &mut Args<'_>, not_positive: Error) -> Result<(), Error> {
    if !args.take("FIELDS") {
        return Err(Error::FieldsMissing);
    }
    let announced = args.integer().ok().filter(|&count| count > 0).ok_or(not_positive)?;
    if usize::try_from(announced) == Ok(args.left()) { Ok(()) } else { Err(Error::NotSoManyFields) }
}
