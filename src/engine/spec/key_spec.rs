//! Where the keys of a command stand in a request, and what happens to them: rules of a command's row.
//!
//! They are those of Redis's key specifications, since COMMAND INFO tells them; where Redis has no rule for what a
//! command does, there is one here that COMMAND INFO calls unknown. What keys a request has by all rules of its command
//! is told by `keys`.

use crate::engine::spec::says;
use crate::resp::Request;
use crate::value::number;

/// Where some keys of a command stand and what happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Where the search begins.
    pub begin: Begin,
    /// How the keys follow from there.
    pub find: Find,
    /// What happens to them.
    pub access: KeyFlags,
    /// What COMMAND INFO says beside, if anything.
    pub notes: &'static str,
}

impl KeySpec {
    /// The one key that is the first argument.
    pub const fn one(access: KeyFlags) -> KeySpec {
        KeySpec::at(1, access)
    }

    /// The one key at that word.
    pub const fn at(index: i32, access: KeyFlags) -> KeySpec {
        KeySpec::range(index, 0, 1, access)
    }

    /// All arguments.
    pub const fn all(access: KeyFlags) -> KeySpec {
        KeySpec::range(1, -1, 1, access)
    }

    /// Every `step`th word from `index` on, up to `last` words further, or as many before the end as it is negative.
    pub const fn range(index: i32, last: i32, step: i32, access: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Range { last, step, limit: 0 }, access, notes: "" }
    }

    /// As many keys as the word at `index` says, from the next word on.
    pub const fn counted(index: i32, access: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Count { at: 0, first: 1, step: 1 }, access, notes: "" }
    }

    /// This rule with notes, which COMMAND INFO shows.
    pub const fn noting(self, notes: &'static str) -> KeySpec {
        KeySpec { notes, ..self }
    }

    /// The words of `request` that are keys by this rule. Empty when the request is malformed.
    pub fn places(&self, request: Request<'_>) -> Vec<usize> {
        let places = self.announced_places(request, number::parse_i64).unwrap_or_default();
        if places.last().is_some_and(|&last| last >= request.len()) { Vec::new() } else { places }
    }

    /// True when keys and what belongs to each of them are not as many: such a request is
    /// refused, and none of its keys is read.
    pub(in crate::engine) fn is_unbalanced(&self, request: Request<'_>) -> bool {
        let Find::Range { limit: parts @ 2.., .. } = self.find else { return false };
        self.begin.place(request).is_some_and(|begin| (request.len() as i64 - begin) % i64::from(parts) != 0)
    }

    /// The words that are keys by this rule, some of which may be missing at the end. `None` when the search for them
    /// does not begin, or what `count` reads is no number that keys can have.
    pub(in crate::engine) fn announced_places(
        &self,
        request: Request<'_>,
        count: fn(&[u8]) -> Option<i64>,
    ) -> Option<Vec<usize>> {
        if let Begin::EachKeyword(keyword, from) = self.begin {
            return Some(behind_each(request, keyword, from));
        }
        let words = request.len() as i64;
        let begin = self.begin.place(request)?;
        let (first, count, step) = match self.find {
            Find::Range { last, step, limit } => {
                let last = match (i64::from(last), i64::from(limit)) {
                    (last, _) if last >= 0 => begin + last,
                    (last, 0 | 1) => words + last,
                    (last, limit) => begin + (words - begin) / limit + last,
                };
                (begin, (last - begin) / i64::from(step) + 1, step)
            }
            Find::Count { at, first, step } => {
                let announced = usize::try_from(begin + i64::from(at)).ok().and_then(|place| request.get(place));
                let count = announced.and_then(count)?;
                (begin + i64::from(first), count, step)
            }
        };
        let is_possible = (0..=words).contains(&count);
        is_possible.then(|| (0..count).map(|index| (first + index * i64::from(step)) as usize).collect())
    }
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At that word.
    Index(i32),
    /// At the word after that keyword, looked for from a place on (counted from the end when negative).
    Keyword(&'static str, i32),
    /// At the word after each use of that keyword from a place on, if there is any: a command that takes it twice goes
    /// by the last. COMMAND INFO has no word for that and calls it a keyword.
    EachKeyword(&'static str, i32),
    /// At a place that follows from no word of the request.
    Unknown,
    /// At the word after the last option of that name, which may be missing; the others have so many words behind them.
    /// COMMAND INFO has no rule for it and calls it unknown.
    Option(&'static str, &'static [(&'static str, usize)]),
}

impl Begin {
    fn place(self, request: Request<'_>) -> Option<i64> {
        match self {
            Begin::Index(index) => Some(i64::from(index)),
            Begin::Keyword(keyword, from) => {
                let words = request.len() as i64;
                let is_keyword = |place: &i64| request.get(*place as usize).is_some_and(|word| says(word, keyword));
                let found = if from >= 0 {
                    (i64::from(from)..words).find(is_keyword)
                } else {
                    (1..=words + i64::from(from)).rev().find(is_keyword)
                };
                found.map(|place| place + 1)
            }
            Begin::Unknown | Begin::EachKeyword(..) => None,
            Begin::Option(name, others) => last_option(request, name, others).map(|place| place as i64),
        }
    }

    /// Whether a request may do without the key.
    pub fn is_optional(self) -> bool {
        matches!(self, Begin::Unknown | Begin::Option(..) | Begin::EachKeyword(..))
    }
}

/// The places behind all uses of a keyword from a place on.
fn behind_each(request: Request<'_>, keyword: &str, from: i32) -> Vec<usize> {
    let from = usize::try_from(from).unwrap_or(0);
    let is_keyword = |place: &usize| request.get(place - 1).is_some_and(|word| says(word, keyword));
    (from + 1..request.len()).filter(is_keyword).collect()
}

/// The place behind the last option of that name, which has a word behind it as each of `others` has so many.
fn last_option(request: Request<'_>, name: &str, others: &[(&str, usize)]) -> Option<usize> {
    let mut found = None;
    let mut place = 2;
    while let Some(word) = request.get(place) {
        if says(word, name) && place + 1 < request.len() {
            found = Some(place + 1);
            place += 1;
        } else if let Some((_, values)) = others.iter().find(|(other, _)| says(word, other)) {
            place += values;
        }
        place += 1;
    }
    found
}

/// How keys follow from where the search began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Up to `last` words further (before the end when negative), every `step`th; `limit` 2 takes only the first half.
    Range {
        /// The last key, from the beginning of the search.
        last: i32,
        /// How far one key is from the next.
        step: i32,
        /// The part of the remaining words that holds keys, as a divisor; 0 and 1 take all.
        limit: i32,
    },
    /// As many as a word announces.
    Count {
        /// The word that announces, from the beginning of the search.
        at: i32,
        /// The first key, from the beginning of the search.
        first: i32,
        /// How far one key is from the next.
        step: i32,
    },
}

/// What happens to a key, as COMMAND INFO's key specifications say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFlags(u16);

impl KeyFlags {
    /// Nothing.
    pub const NONE: KeyFlags = KeyFlags(0);
    /// Read and written.
    pub const RW: KeyFlags = KeyFlags(1);
    /// Only read.
    pub const RO: KeyFlags = KeyFlags(1 << 1);
    /// Overwritten without being read.
    pub const OW: KeyFlags = KeyFlags(1 << 2);
    /// Removed.
    pub const RM: KeyFlags = KeyFlags(1 << 3);
    /// Its data comes back to the client or goes into another key.
    pub const ACCESS: KeyFlags = KeyFlags(1 << 4);
    /// Its data changes depending on what it was.
    pub const UPDATE: KeyFlags = KeyFlags(1 << 5);
    /// Data is added, none is lost.
    pub const INSERT: KeyFlags = KeyFlags(1 << 6);
    /// Data is lost.
    pub const DELETE: KeyFlags = KeyFlags(1 << 7);
    /// It looks like a key and is none.
    pub const NOT_KEY: KeyFlags = KeyFlags(1 << 8);
    /// Some keys may be missed.
    pub const INCOMPLETE: KeyFlags = KeyFlags(1 << 9);
    /// What happens to it depends on the arguments.
    pub const VARIABLE: KeyFlags = KeyFlags(1 << 10);

    /// Both sets.
    pub const fn and(self, other: KeyFlags) -> KeyFlags {
        KeyFlags(self.0 | other.0)
    }

    /// True when all of `other` is set.
    pub const fn has(self, other: KeyFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names that COMMAND INFO lists, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(KeyFlags, &str); 11] = [
            (KeyFlags::RO, "RO"),
            (KeyFlags::RW, "RW"),
            (KeyFlags::OW, "OW"),
            (KeyFlags::RM, "RM"),
            (KeyFlags::ACCESS, "access"),
            (KeyFlags::UPDATE, "update"),
            (KeyFlags::INSERT, "insert"),
            (KeyFlags::DELETE, "delete"),
            (KeyFlags::NOT_KEY, "not_key"),
            (KeyFlags::INCOMPLETE, "incomplete"),
            (KeyFlags::VARIABLE, "variable_flags"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}
