//! Elements of a collection as replies, many in a row.
//!
//! Elements of one collection are often alike: they begin with the same prefix, which a packed collection keeps once, and
//! are equally long. So the front of a frame, its length and the prefix, is written once and copied for each element that
//! has the same. Copies are of fixed sizes, cut to length afterwards: for the few bytes that elements have, that is
//! quicker than to ask for exactly as many.
//!
//! It writes what [`Reply::item`] writes for each element, byte for byte.

use super::Reply;
use crate::value::Item;

/// Bytes of a front that is copied.
const FRONT_BYTES: usize = 32;

/// The front of the frames of elements that are alike.
#[derive(Default)]
struct Front<'i> {
    prefix: &'i [u8],
    /// The length of an element; 0 if there is no front yet.
    len: usize,
    bytes: [u8; FRONT_BYTES],
    used: usize,
}

impl Reply<'_> {
    /// Elements of a collection, each as a bulk string. The header is the caller's.
    pub fn items<'i>(&mut self, items: impl Iterator<Item = Item<'i>>) {
        let mut front = Front::default();
        items.for_each(|item| match item {
            Item::Text(prefix, rest) if !prefix.is_empty() => self.alike(&mut front, prefix, rest),
            _ => self.item(item),
        });
    }

    fn alike<'i>(&mut self, front: &mut Front<'i>, prefix: &'i [u8], rest: &[u8]) {
        let len = prefix.len() + rest.len();
        if len != front.len || !std::ptr::eq(prefix, front.prefix) {
            let start = self.out.len();
            self.item(Item::Text(prefix, rest));
            let used = self.out.len() - start - rest.len() - b"\r\n".len();
            if let Some(bytes) = front.bytes.get_mut(..used) {
                bytes.copy_from_slice(&self.out[start..start + used]);
                *front = Front { prefix, len, used, ..*front };
            }
            return;
        }
        let end = self.out.len() + front.used;
        self.out.extend_from_slice(&front.bytes);
        self.out.truncate(end);
        append(self.out, rest);
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Puts a few bytes at the end of `out`: up to sixteen as two words, which may overlap.
fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let end = out.len() + bytes.len();
    if let (9..=16, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        out.extend_from_slice(first);
        out.truncate(end - 8);
        out.extend_from_slice(last);
    } else if let (4..=8, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        out.extend_from_slice(first);
        out.truncate(end - 4);
        out.extend_from_slice(last);
    } else {
        out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use crate::resp::{Protocol, Reply};
    use crate::value::Item;
    use proptest::prelude::*;

    fn prefixes() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..3)
    }

    proptest! {
        #[test]
        fn elements_in_a_row_are_written_as_each_alone(
            prefixes in prefixes(),
            rests in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..130)), 0..20),
        ) {
            let item = |(at, rest): &'_ (prop::sample::Index, Vec<u8>)| -> (usize, Vec<u8>) {
                (at.index(prefixes.len()), rest.iter().copied().take(rest.len() % 20).collect())
            };
            let all: Vec<(usize, Vec<u8>)> = rests.iter().map(item).collect();
            let items = || all.iter().map(|(at, rest)| Item::Text(&prefixes[*at], rest)).chain([Item::Int(7)]);
            let (mut together, mut alone) = (Vec::new(), Vec::new());
            Reply::new(&mut together, Protocol::Resp2).items(items());
            items().for_each(|item| Reply::new(&mut alone, Protocol::Resp2).item(item));
            prop_assert_eq!(together, alone);
        }
    }
}
