//! The keys of a request: where they stand and what happens to each, by the row of its command.
//!
//! One rule serves all who ask: rights are checked for the keys that are found here, COMMAND GETKEYS tells them, and
//! the tests hold handlers to them.

use crate::engine::spec::{Command, Find, KeyFlags, KeySpec};
use crate::resp::Request;
use crate::value::number;

impl Command {
    /// What happens to the keys that `spec` finds in a request.
    pub fn access(&self, spec: &KeySpec, request: Request<'_>) -> KeyFlags {
        let by_words = self.access_of.filter(|_| spec.access.has(KeyFlags::VARIABLE));
        by_words.map_or(spec.access, |access_of| access_of(request))
    }

    /// True when it may have keys.
    pub fn has_keys(&self) -> bool {
        self.keys.iter().any(|spec| !spec.access.has(KeyFlags::NOT_KEY))
    }

    /// The places of all keys in a request, and what happens to each. None of a request so malformed that nothing will
    /// happen to any.
    ///
    /// Where a number of keys is none, Redis goes by the digits that it begins with, does not tell what happens, and
    /// comes to the key of the result last.
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
