//! Key specifications: the rules in a command's row that find the keys in a request and describe the access to them.
//!
//! They are Redis's key specifications, since COMMAND INFO shows them; where Redis has no rule for a command, there is
//! one here that COMMAND INFO calls unknown. The module `keys` applies all rules of a command to a request.

use crate::engine::spec::says;
use crate::resp::Request;
use crate::value::number;

/// One rule: where some keys of a command are, and the access to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// The place where the search for keys begins.
    pub begin: Begin,
    /// The way in which the keys follow from that place.
    pub find: Find,
    /// The access to these keys.
    pub access: KeyFlags,
    /// Notes that COMMAND INFO shows; may be empty.
    pub notes: &'static str,
}

impl KeySpec {
    /// The rule for one key, which is the first argument.
    pub const fn one(access: KeyFlags) -> KeySpec {
        KeySpec::at(1, access)
    }

    /// The rule for one key, which is the word at `index`.
    pub const fn at(index: i32, access: KeyFlags) -> KeySpec {
        KeySpec::range(index, 0, 1, access)
    }

    /// The rule for a command whose arguments are all keys.
    pub const fn all(access: KeyFlags) -> KeySpec {
        KeySpec::range(1, -1, 1, access)
    }

    /// The rule for every `step`th word from `index` on, up to `last` words further; a negative `last` counts from the
    /// end.
    pub const fn range(index: i32, last: i32, step: i32, access: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Range { last, step, limit: 0 }, access, notes: "" }
    }

    /// The rule for a number of keys that the word at `index` gives, from the next word on.
    pub const fn counted(index: i32, access: KeyFlags) -> KeySpec {
        KeySpec { begin: Begin::Index(index), find: Find::Count { at: 0, first: 1, step: 1 }, access, notes: "" }
    }

    /// Adds notes to this rule, which COMMAND INFO shows.
    pub const fn noting(self, notes: &'static str) -> KeySpec {
        KeySpec { notes, ..self }
    }

    /// The words of `request` that are keys by this rule. Empty when the request is malformed.
    pub fn places(&self, request: Request<'_>) -> Vec<usize> {
        let places = self.announced_places(request, number::parse_i64).unwrap_or_default();
        if places.last().is_some_and(|&last| last >= request.len()) { Vec::new() } else { places }
    }

    /// True when the number of keys differs from the number of values that belong to them: such a request is refused,
    /// and none of its keys is read.
    pub(in crate::engine) fn is_unbalanced(&self, request: Request<'_>) -> bool {
        let Find::Range { limit: parts @ 2.., .. } = self.find else { return false };
        self.begin.place(request).is_some_and(|begin| (request.len() as i64 - begin) % i64::from(parts) != 0)
    }

    /// The places of the keys by this rule, the last of which may be beyond the end of the request. `None` when the
    /// search finds no beginning, or when `count` reads an impossible number of keys.
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

/// The place where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The word at this place.
    Index(i32),
    /// The word after this keyword, which is searched for from a place on (counted from the end when negative).
    Keyword(&'static str, i32),
    /// The word after each use of this keyword from a place on, if there is any: a command that accepts it twice uses
    /// the last. COMMAND INFO has no rule for that and calls it a keyword.
    EachKeyword(&'static str, i32),
    /// A place that does not follow from any word of the request.
    Unknown,
    /// The word after the last option with this name, if there is one; the list has the other options and the number of
    /// values of each. COMMAND INFO has no rule for it and calls it unknown.
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

    /// True when a request may leave out these keys.
    pub fn is_optional(self) -> bool {
        matches!(self, Begin::Unknown | Begin::Option(..) | Begin::EachKeyword(..))
    }
}

/// The places after all uses of a keyword, from the place `from` on.
fn behind_each(request: Request<'_>, keyword: &str, from: i32) -> Vec<usize> {
    let from = usize::try_from(from).unwrap_or(0);
    let is_keyword = |place: &usize| request.get(place - 1).is_some_and(|word| says(word, keyword));
    (from + 1..request.len()).filter(is_keyword).collect()
}

/// The place after the last option with that name, which has one value; `others` gives the number of values of each
/// other option.
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

/// The way in which the keys follow from the beginning of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`th word, up to `last` words further (from the end when negative); `limit` 2 takes only the first
    /// half.
    Range {
        /// The last key, relative to the beginning of the search.
        last: i32,
        /// The distance from one key to the next.
        step: i32,
        /// The part of the remaining words that holds keys, as a divisor; 0 and 1 take all.
        limit: i32,
    },
    /// A number of keys that one word gives.
    Count {
        /// The word with the number, relative to the beginning of the search.
        at: i32,
        /// The first key, relative to the beginning of the search.
        first: i32,
        /// The distance from one key to the next.
        step: i32,
    },
}

/// The access to a key, in the flags of COMMAND INFO's key specifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFlags(u16);

impl KeyFlags {
    /// No flag.
    pub const NONE: KeyFlags = KeyFlags(0);
    /// The key is read and written.
    pub const RW: KeyFlags = KeyFlags(1);
    /// The key is only read.
    pub const RO: KeyFlags = KeyFlags(1 << 1);
    /// The key is overwritten without being read.
    pub const OW: KeyFlags = KeyFlags(1 << 2);
    /// The key is removed.
    pub const RM: KeyFlags = KeyFlags(1 << 3);
    /// The data of the key is returned to the client or copied to another key.
    pub const ACCESS: KeyFlags = KeyFlags(1 << 4);
    /// The data of the key changes depending on its old content.
    pub const UPDATE: KeyFlags = KeyFlags(1 << 5);
    /// Data is added to the key, and none is removed.
    pub const INSERT: KeyFlags = KeyFlags(1 << 6);
    /// Data of the key is removed.
    pub const DELETE: KeyFlags = KeyFlags(1 << 7);
    /// The word looks like a key but is none.
    pub const NOT_KEY: KeyFlags = KeyFlags(1 << 8);
    /// The rule may miss some keys.
    pub const INCOMPLETE: KeyFlags = KeyFlags(1 << 9);
    /// The access depends on the arguments.
    pub const VARIABLE: KeyFlags = KeyFlags(1 << 10);

    /// The flags of both sets.
    pub const fn and(self, other: KeyFlags) -> KeyFlags {
        KeyFlags(self.0 | other.0)
    }

    /// True when all flags of `other` are set.
    pub const fn has(self, other: KeyFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the flags that COMMAND INFO lists, in Redis's order.
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
