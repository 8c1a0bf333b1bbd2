//! Skips values: finds where one ends without reading what it has, in a fraction of the time.
//!
//! So the loader of a file knows whether all of a value has arrived, and where the next begins, which another thread
//! may read meanwhile.

use crate::rdb::kind;
use crate::rdb::text::Reader;

impl Reader<'_> {
    /// Skips the next value. `None` if it is damaged, not there as a whole, or of a type whose values have to be read
    /// to find their end: those that only early versions wrote.
    pub(in crate::rdb) fn skip_value(&mut self, kind: u8) -> Option<()> {
        match kind {
            kind::TEXT
            | kind::HASH_ZIPMAP
            | kind::LIST_ZIPLIST
            | kind::SET_INTSET
            | kind::ZSET_ZIPLIST
            | kind::HASH_ZIPLIST
            | kind::HASH_LISTPACK
            | kind::ZSET_LISTPACK
            | kind::SET_LISTPACK => self.skip_text(),
            kind::HASH_LISTPACK_EX => {
                self.moment()?;
                self.skip_text()
            }
            kind::LIST | kind::SET | kind::LIST_QUICKLIST => self.skip_each(Reader::skip_text),
            kind::LIST_QUICKLIST_2 => self.skip_each(|reader| {
                reader.length()?;
                reader.skip_text()
            }),
            kind::ZSET_2 => self.skip_each(|reader| {
                reader.skip_text()?;
                reader.double().map(drop)
            }),
            kind::HASH => self.skip_each(Reader::skip_two_texts),
            kind::HASH_METADATA => {
                self.moment()?;
                self.skip_each(|reader| {
                    reader.length()?;
                    reader.skip_two_texts()
                })
            }
            kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => self.skip_stream(kind),
            kind::MODULE_2 => self.skip_module_value(),
            _ => None,
        }
    }

    fn skip_each(&mut self, skip: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        for _ in 0..self.length()? {
            skip(self)?;
        }
        Some(())
    }

    fn skip_two_texts(&mut self) -> Option<()> {
        self.skip_text()?;
        self.skip_text()
    }

    fn skip_stream(&mut self, kind: u8) -> Option<()> {
        self.skip_each(Reader::skip_two_texts)?;
        let counters = if kind == kind::STREAM { 3 } else { 8 };
        (0..counters).try_for_each(|_| self.length().map(drop))?;
        self.skip_each(|reader| {
            reader.skip_text()?;
            let numbers = if kind == kind::STREAM { 2 } else { 3 };
            (0..numbers).try_for_each(|_| reader.length().map(drop))?;
            reader.skip_each(|reader| {
                reader.bytes(16)?;
                reader.moment()?;
                reader.length().map(drop)
            })?;
            reader.skip_each(|reader| {
                reader.skip_text()?;
                let moments = if kind == kind::STREAM_3 { 2 } else { 1 };
                (0..moments).try_for_each(|_| reader.moment().map(drop))?;
                reader.skip_each(|reader| reader.bytes(16).map(drop))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::{Forms, VERSION, Writer};
    use crate::value::stream::{Id, Limits, Stream};
    use crate::value::{Hash, List, Set, Value, Zset};

    /// Values of all types in the forms with several parts.
    fn values() -> Vec<Value> {
        let forms = Forms::default();
        let (mut hash, mut timed, mut zset, mut set) = (Hash::new(), Hash::new(), Zset::new(), Set::new());
        for number in 0..5_u8 {
            let text = vec![b'a' + number; 40 * usize::from(number)];
            hash.insert(&[number], &text, &forms.hash);
            timed.insert(&[number], &text, &forms.hash);
            zset.insert(&text, f64::from(number), &forms.zset);
            set.insert(&text, &forms.set);
        }
        timed.set_deadline(&[1], Some(5_000));
        let elements = [&b"one"[..], b"70000", &[b'x'; 100]];
        let list = List::from_elements(elements, &forms.list);
        let mut values =
            vec![Value::Hash(hash), Value::Hash(timed), Value::Zset(zset), Value::Set(set), Value::List(list)];
        values.push(Value::Stream(stream()));
        values
    }

    /// A stream with two groups, of which one has a consumer with two pending entries.
    fn stream() -> Stream {
        let mut stream = Stream::new();
        for number in 1..5 {
            stream.log_mut().push(Id::new(number, 0), [&b"field"[..], b"value"].into_iter(), &Limits::default());
        }
        assert!(stream.add_group(b"one", Id::new(2, 0), Some(2)) && stream.add_group(b"two", Id::MIN, None));
        let assigned = stream.edit_group(b"one", |_, group| {
            let (number, _) = group.add_consumer(b"somebody", 7);
            (1..3).for_each(|id| group.assign(Id::new(id, 0), number, 8, 1));
        });
        assert!(assigned.is_some());
        stream
    }

    #[test]
    fn a_value_is_skipped_as_far_as_it_is_read() {
        for (value, version) in values().iter().flat_map(|value| (10..=VERSION).map(move |version| (value, version))) {
            let mut writer = Writer::in_parts(true, version, usize::MAX);
            writer.value_in_parts(value.view(), &mut |_| Ok(())).expect("nothing is passed on");
            let (kind, bytes) = (writer.kind_of(value.view()), writer.out.as_slice());
            let mut reader = Reader::new(bytes);
            assert!(reader.skip_value(kind).is_some() && reader.is_at_end(), "{kind}");
            for end in 0..bytes.len() {
                let mut reader = Reader::new(&bytes[..end]);
                assert!(reader.skip_value(kind).is_none() && reader.is_short(), "{kind} {end}");
            }
        }
    }
}
