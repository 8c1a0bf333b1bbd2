//! Streams: blocks as listpacks, counters, and groups with their consumers and pending entries.
//!
//! Everything is checked against everything else: ids ascend within a block and from block to block, counts are
//! right, no counter contradicts an entry (but they wrap around, as Redis's do), and each pending entry has one
//! consumer, which lists it too. The id of the first entry is that of the entry: as in Redis, a file may say another.

use super::Reader;
use crate::rdb::kind;
use crate::rdb::listpack::Items;
use crate::rdb::save_stream::{DELETED, SHARES_FIELDS};
use crate::value::stream::{Block, Group, Id, Log, Rebuilding, Stream};
use std::borrow::Cow;

/// The room that a group or a consumer takes, in elements.
const GROUP_ROOM: usize = 8;

impl Reader<'_> {
    pub(super) fn stream(&mut self, kind: u8) -> Option<Stream> {
        let mut stream = Stream::new();
        for _ in 0..self.length()? {
            let block = self.block()?;
            stream.log_mut().append(block).then_some(())?;
        }
        self.counters(kind, stream.log_mut())?;
        for _ in 0..self.length()? {
            self.take_room(GROUP_ROOM, 0)?;
            let (name, last) = (self.text()?, self.id()?);
            let read = match kind {
                kind::STREAM => stream.log().place(last).map(u64::cast_signed),
                _ => Some(self.length()?.cast_signed()),
            };
            let read = read.filter(|read| *read != -1);
            stream.add_group(&name, last, read).then_some(())?;
            stream.edit_group(&name, |_, group| self.group(kind, group))??;
        }
        Some(stream)
    }

    fn counters(&mut self, kind: u8, log: &mut Log) -> Option<()> {
        let (len, last) = (self.length()?, self.id()?);
        let (first, max_deleted, added) = match kind {
            kind::STREAM if log.is_empty() => (Id::MAX, Id::MIN, len),
            kind::STREAM => (log.first(), Id::MIN, len),
            _ => (self.id()?, self.id()?, self.length()?),
        };
        log.set_first_of_empty(first);
        let fits = len == log.len() as u64 && last >= log.last() && max_deleted <= last && added >= len;
        log.set_last(last);
        log.set_max_deleted(max_deleted);
        log.set_added(added);
        fits.then_some(())
    }

    fn id(&mut self) -> Option<Id> {
        Some(Id::new(self.length()?, self.length()?))
    }

    /// An id in 16 bytes, high bytes first.
    fn raw_id(&mut self) -> Option<Id> {
        raw_id(self.bytes(16)?)
    }

    fn group(&mut self, kind: u8, group: &mut Group) -> Option<()> {
        let mut pending = Vec::new();
        for _ in 0..self.length()? {
            self.take_room(2, 0)?;
            let (id, delivered_ms, times) = (self.raw_id()?, self.moment()?, self.length()?);
            pending.push((id, i64::try_from(delivered_ms).ok()?, times));
        }
        pending.is_sorted_by(|one, next| one.0 < next.0).then_some(())?;
        for _ in 0..self.length()? {
            self.take_room(GROUP_ROOM, 0)?;
            let (name, seen_ms) = (self.text()?, self.moment()?.cast_signed());
            let active_ms = if kind == kind::STREAM_3 { self.moment()?.cast_signed() } else { seen_ms };
            let (number, is_new) = group.add_consumer(&name, seen_ms);
            (is_new && seen_ms >= 0 && active_ms >= -1).then_some(())?;
            for _ in 0..self.length()? {
                let id = self.raw_id()?;
                let (_, delivered_ms, times) = pending[pending.binary_search_by_key(&id, |pending| pending.0).ok()?];
                group.pending(id).is_none().then_some(())?;
                group.assign(id, number, delivered_ms, times);
            }
            group.consumer_mut(number).active_ms = Some(active_ms).filter(|active_ms| *active_ms >= 0);
        }
        (group.pending_len() == pending.len()).then_some(())
    }

    fn block(&mut self) -> Option<Block> {
        let first = raw_id(&self.part()?)?;
        let bytes = self.part()?;
        let mut items = self.open_listpack(&bytes)?;
        let (live, deleted) = (count(&mut items)?, count(&mut items)?);
        let fields = count(&mut items)?;
        let fields = texts(&mut items, fields)?;
        (!fields.is_empty() && items.next_integer()? == 0).then_some(())?;
        let mut block = Rebuilding::new(first, fields.iter().map(|field| &**field), bytes.len());
        entries(&mut block, items, first, fields.len())?;
        block.finish(live, deleted, bytes.len())
    }
}

/// Reads the entries of a block to the end of the listpack.
#[inline(never)]
fn entries(block: &mut Rebuilding, mut items: Items<'_>, first: Id, shared_fields: usize) -> Option<()> {
    while items.len() > 0 {
        if entry(block, &mut items, first, shared_fields).is_none() {
            block.make_room(items.left_bytes());
            entry(block, &mut items, first, shared_fields)?;
        }
    }
    items.are_at_end().then_some(())
}

/// Reads an entry. `None`, and nothing has changed, if there is no room for it, or if it is damaged.
#[inline(always)]
fn entry(block: &mut Rebuilding, items: &mut Items<'_>, first: Id, shared_fields: usize) -> Option<()> {
    let mut ahead = items.ahead();
    let [flags, ms, seq] = ahead.three_integers()?;
    let id = id_of(first, ms, seq);
    let is_next = block.last().map_or(id == first, |before| before < id);
    if !is_next || flags.cast_unsigned() > (DELETED | SHARES_FIELDS).cast_unsigned() {
        return None;
    }
    let (own_fields, words) = if flags & SHARES_FIELDS == 0 {
        let fields = usize::try_from(ahead.integer()?).ok()?;
        (Some(fields), fields.checked_mul(2)?)
    } else {
        (None, shared_fields)
    };
    let mut draft = block.draft(id, flags & DELETED != 0, own_fields).filter(|_| words > 0)?;
    for _ in 0..words {
        match ahead.short_text() {
            Some((length, bytes)) => draft.text_ahead(length, bytes)?,
            None => draft = draft.word(ahead.item()?)?,
        }
    }
    let length = draft.end()?;
    let elements = words.wrapping_add(3 + usize::from(own_fields.is_some()));
    (ahead.integer()? == elements as i64).then_some(())?;
    items.skip_to(ahead, elements.wrapping_add(1))?;
    block.keep(id, flags & DELETED != 0, length);
    Some(())
}

/// The id that is stored as two differences to the first one of its block.
#[inline(always)]
fn id_of(first: Id, ms: i64, seq: i64) -> Id {
    Id::new(first.ms.wrapping_add_signed(ms), first.seq.wrapping_add_signed(seq))
}

fn raw_id(bytes: &[u8]) -> Option<Id> {
    let (ms, seq) = bytes.split_first_chunk()?;
    Some(Id::new(u64::from_be_bytes(*ms), u64::from_be_bytes(seq.try_into().ok()?)))
}

#[inline(always)]
fn count(items: &mut Items<'_>) -> Option<usize> {
    usize::try_from(items.next_integer()?).ok()
}

/// The next elements as texts; `None` if there are fewer.
fn texts<'a>(items: &mut Items<'a>, count: usize) -> Option<Vec<Cow<'a, [u8]>>> {
    (0..count).map(|_| items.next().map(|item| item.to_cow())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Writer;
    use crate::value::View;
    use crate::value::stream::Limits;

    #[test]
    fn the_first_id_is_that_of_the_first_entry_whatever_the_counters_say() {
        let mut stream = Stream::new();
        stream.log_mut().push(Id::new(5, 0), [&b"field"[..], b"value"].into_iter(), &Limits::default());
        let mut writer = Writer::new(false);
        writer.value(View::Stream(&stream));
        // The length, the last id, the first id, the largest deleted one, the added entries, and no groups.
        let counters = writer.out.len() - 9;
        assert_eq!(writer.out[counters..], [1, 5, 0, 5, 0, 0, 0, 1, 0]);
        writer.out[counters + 3] = 4;
        let loaded = Reader::new(&writer.out).stream(kind::STREAM_3).expect("another first id is taken");
        assert_eq!(loaded.log().first(), Id::new(5, 0));
        writer.out[counters + 1] = 4;
        assert!(Reader::new(&writer.out).stream(kind::STREAM_3).is_none(), "the last id is before the entry's");
    }

    #[test]
    fn words_of_every_length_and_numbers_of_every_width_are_read() {
        let mut stream = Stream::new();
        let texts =
            (0..80).flat_map(|length| [b'x', b'7', b'-'].map(|first| [&[first][..], &vec![b'5'; length]].concat()));
        let numbers =
            (0..63).flat_map(|bits| [1_i64 << bits, -1 << bits].map(|number| number.to_string().into_bytes()));
        for (index, word) in texts.chain(numbers).chain([Vec::new()]).enumerate() {
            let words = [&b"field"[..], &word, &b"other"[..], b""];
            stream.log_mut().push(Id::new(1 + index as u64 / 3, index as u64), words.into_iter(), &Limits::default());
        }
        let written = |stream: &Stream| {
            let mut writer = Writer::new(false);
            writer.value(View::Stream(stream));
            writer.out
        };
        let bytes = written(&stream);
        let loaded = Reader::new(&bytes).stream(kind::STREAM_3).expect("it is whole");
        loaded.check();
        assert_eq!(written(&loaded), bytes);
        let shown = |stream: &Stream| format!("{:?}", stream.log().range(Id::MIN, Id::MAX).collect::<Vec<_>>());
        assert_eq!(shown(&loaded), shown(&stream));
    }
}
