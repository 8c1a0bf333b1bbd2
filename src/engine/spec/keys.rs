//! The keys of a request: their places and the access to each, by the row of its command.
//!
//! All users of keys share one rule: permissions are checked for the keys that are found here, COMMAND GETKEYS returns
//! them, and tests check that handlers use no others.

use crate::engine::spec::{Command, Find, KeyFlags, KeySpec};
use crate::resp::Request;
use crate::value::number;

/// Which arguments of a command are keys, where its row says so for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum PlainKeys {
    /// There are none, and no shard channels.
    None,
    /// The first one.
    First,
    /// The first one, and all others that are so many words apart.
    Each(i32),
    /// It depends on the request.
    Other,
}

impl Command {
    /// The access to the keys that `spec` finds in a request.
    pub fn access(&self, spec: &KeySpec, request: Request<'_>) -> KeyFlags {
        let by_words = self.access_of.filter(|_| spec.access.has(KeyFlags::VARIABLE));
        by_words.map_or(spec.access, |access_of| access_of(request))
    }

    /// True when a request of this command may have keys.
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(|spec| !spec.access.has(KeyFlags::NOT_KEY))
    }

    /// Which arguments are the keys in every request of this command.
    pub(in crate::engine) fn plain_keys(&self) -> PlainKeys {
        let is = |spec: &KeySpec, last, step| {
            *spec == KeySpec { notes: spec.notes, ..KeySpec::range(1, last, step, spec.access) }
        };
        match self.keys {
            _ if self.keys_by.is_some() => PlainKeys::Other,
            [] => PlainKeys::None,
            [spec] if spec.access.has(KeyFlags::NOT_KEY) => PlainKeys::Other,
            [spec] if is(spec, 0, 1) => PlainKeys::First,
            [spec] => [1, 2].into_iter().find(|step| is(spec, -1, *step)).map_or(PlainKeys::Other, PlainKeys::Each),
            _ => PlainKeys::Other,
        }
    }

    /// The places of all keys in a request, and the access to each. Empty for a request so malformed that no key will
    /// be accessed.
    ///
    /// Where the number of keys is not a number, Redis uses the digits that it begins with, reports no access, and puts
    /// the key of the result last.
    pub fn keys_of(&self, request: Request<'_>) -> Vec<(usize, KeyFlags)> {
        if let (Some(keys_by), Some(first)) = (self.keys_by, self.keys.first()) {
            return keys_by(request)
                .filter(|place| *place < request.len())
                .map(|place| (place, first.access))
                .collect();
        }
        let keys = self.counted_keys(request, number::parse_i64);
        let guessed = || {
            let mut keys = self.counted_keys(request, |word| Some(number::leading_i64(word))).unwrap_or_default();
            let is_counted = |spec: &&KeySpec| matches!(spec.find, Find::Count { .. });
            let results = self.keys.iter().take_while(|spec| !is_counted(spec)).count();
            let results = results.min(keys.len());
            keys.rotate_left(results);
            keys.into_iter().map(|(place, _)| (place, KeyFlags::NONE)).collect()
        };
        keys.unwrap_or_else(guessed)
    }

    fn counted_keys(&self, request: Request<'_>, count: fn(&[u8]) -> Option<i64>) -> Option<Vec<(usize, KeyFlags)>> {
        let mut keys = Vec::new();
        for spec in self.keys.iter().filter(|spec| !spec.access.has(KeyFlags::NOT_KEY)) {
            let Some(places) = spec.announced_places(request, count) else {
                if spec.begin.is_optional() || spec.access.has(KeyFlags::INCOMPLETE) {
                    continue;
                }
                return None;
            };
            let is_there = |place: &usize| *place < request.len();
            let is_counted = matches!(spec.find, Find::Count { .. });
            if is_counted && !places.last().is_some_and(is_there) {
                return None;
            }
            let access = self.access(spec, request);
            keys.extend(places.into_iter().filter(is_there).map(|place| (place, access)));
        }
        Some(keys)
    }
}
