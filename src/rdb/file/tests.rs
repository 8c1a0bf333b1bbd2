//! Files written and read back, cut and flipped.

use std::io::Cursor;

use super::*;
use crate::rdb::checksum::crc64;
use crate::rdb::{Forms, VERSION, dump};
use crate::value::text::TextView;
use crate::value::{Hash, Set, Text, Value, View};

/// The forms of Redis's defaults.
fn forms() -> Forms {
    let hash = crate::value::hash::Limits { entries: 128, bytes: 64, ..Default::default() };
    Forms { hash, ..Forms::default() }
}

/// A record, as text.
fn shown(record: Record<'_>) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match record {
        Record::Aux(name, value) => format!("aux {} {}", text(&name), text(&value)),
        Record::Function(source) => format!("function {}", text(&source)),
        Record::Database(number) => format!("database {number}"),
        Record::Sizes(keys, deadlines) => format!("sizes {keys} {deadlines}"),
        Record::End(checksum) => format!("end {checksum:?}"),
        Record::Entry(entry) => {
            let value = match entry.value {
                Loaded::Text(bytes) => text(&bytes),
                Loaded::Value(value) => format!("{} {}", value.view().type_name(), value.view().encoding()),
                Loaded::Empty => "empty".to_owned(),
            };
            let (deadline, hint) = (entry.deadline_ms, entry.hint);
            format!("key {} {value} {deadline:?} {hint:?}", text(&entry.key))
        }
    }
}

/// Everything that a file has, read `step` bytes at a time.
fn read_by(step: usize, bytes: &[u8]) -> Result<Vec<String>, Fault> {
    let mut loader = Loader::open(Slow { bytes, step }, true)?;
    let mut records = Vec::new();
    while loader.next(&forms(), |record| {
        records.push(shown(record));
        Ok(())
    })? {}
    Ok(records)
}

fn read(bytes: &[u8]) -> Result<Vec<String>, Fault> {
    read_by(usize::MAX, bytes)
}

/// A source that gives few bytes at a time.
struct Slow<'b> {
    bytes: &'b [u8],
    step: usize,
}

impl std::io::Read for Slow<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.step.min(out.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        out[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}

const OPTIONS: Options = Options { compresses: true, has_checksum: true, version: VERSION };

/// A key with this value, and nothing else.
fn saved<'k>(key: &'k [u8], view: View<'k>) -> SavedKey<'k> {
    SavedKey { key, view, deadline_ms: None, hint: None }
}

/// A file with one of each record.
fn sample(options: Options) -> Vec<u8> {
    let mut saver = Saver::begin(Vec::new(), options);
    saver.aux("redis-ver", "8.0.6");
    saver.aux("ctime", "1700000000");
    saver.function(b"#!lua name=lib").expect("memory takes everything");
    saver.database(0, 2, 1);
    let long = vec![b'x'; 1000];
    let view = View::Text(TextView::Bytes(&long));
    let (deadline_ms, hint) = (Some(1_700_000_000_123), Some(LruHint::Idle(70)));
    saver.entry(SavedKey { deadline_ms, hint, ..saved(b"key", view) }).expect("memory takes everything");
    let counted = SavedKey { hint: Some(LruHint::Frequency(9)), ..saved(b"17", View::Text(TextView::Int(-3))) };
    saver.entry(counted).expect("memory takes everything");
    saver.select(5);
    saver.finish().expect("memory takes everything").0
}

#[test]
fn a_file_reads_back_as_it_was_written_in_steps_of_any_size() {
    let bytes = sample(OPTIONS);
    let expected = [
        "aux redis-ver 8.0.6".to_owned(),
        "aux ctime 1700000000".to_owned(),
        "function #!lua name=lib".to_owned(),
        "database 0".to_owned(),
        "sizes 2 1".to_owned(),
        format!("key key {} Some(1700000000123) Some(Idle(70))", "x".repeat(1000)),
        "key 17 -3 None Some(Frequency(9))".to_owned(),
        "database 5".to_owned(),
        "end Right".to_owned(),
    ];
    for step in [1, 2, 7, 100, usize::MAX] {
        assert_eq!(read_by(step, &bytes).expect("it is whole"), expected, "by {step} bytes");
    }
}

#[test]
fn a_value_larger_than_the_window_is_read() {
    let mut saver = Saver::begin(Vec::new(), Options { compresses: false, has_checksum: true, version: VERSION });
    let long = vec![b'x'; 3 << 20];
    saver.entry(saved(b"long", View::Text(TextView::Bytes(&long)))).expect("memory takes everything");
    let bytes = saver.finish().expect("memory takes everything").0;
    assert_eq!(read(&bytes).expect("it is whole").len(), 2);
}

/// An output that notes the most bytes that it was given at once.
#[derive(Default)]
struct Parts {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Parts {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(part);
        self.most = self.most.max(part.len());
        Ok(part.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_large_collection_is_written_in_parts_and_read_as_a_whole() {
    let (mut set, limits) = (Set::new(), forms().set);
    (0..60_000).for_each(|number| _ = set.insert(format!("member {number}").as_bytes(), &limits));
    let mut saver = Saver::begin(Parts::default(), OPTIONS);
    saver.entry(saved(b"large", View::Set(&set))).expect("memory takes everything");
    let out = saver.finish().expect("memory takes everything").0;
    assert!(out.most < 70_000 && out.bytes.len() > 700_000, "{} of {}", out.most, out.bytes.len());
    let mut loaded = 0;
    let mut loader = Loader::open(&out.bytes[..], true).expect("it is a file");
    let mut take = |record: Record<'_>| {
        if let Record::Entry(Entry { value: Loaded::Value(Value::Set(set)), .. }) = record {
            loaded = set.len();
        }
        Ok(())
    };
    while loader.next(&forms(), &mut take).expect("it is whole") {}
    assert_eq!(loaded, set.len());
    for end in [300_000, out.bytes.len() - 10] {
        let fault = read(&out.bytes[..end]).expect_err("it is cut");
        assert!(matches!(fault.reason, FaultReason::Short) && fault.key.as_deref() == Some(b"large"), "{fault:?}");
    }
}

#[test]
fn a_file_without_a_checksum_says_so() {
    let bytes = sample(Options { compresses: false, has_checksum: false, version: VERSION });
    assert_eq!(bytes[bytes.len() - 8..], [0; 8]);
    assert_eq!(read(&bytes).expect("it is whole").last().map(String::as_str), Some("end Disabled"));
    let loader = Loader::open(Cursor::new(sample(OPTIONS)), false);
    assert!(loader.is_ok_and(|loader| loader.version() == 12));
}

#[test]
fn a_file_of_an_older_version_has_its_forms_and_no_hash_whose_fields_expire() {
    let (mut set, mut hash) = (Set::new(), Hash::new());
    set.insert(b"member", &forms().set);
    hash.insert(b"field", b"value", &forms().hash);
    let file_of = |version, view: View<'_>| {
        let mut saver = Saver::begin(Vec::new(), Options { version, ..OPTIONS });
        saver.entry(saved(b"key", view))?;
        saver.finish().map(|(bytes, _)| bytes)
    };
    for (version, kind) in [(12, 20), (11, 20), (10, 2)] {
        let bytes = file_of(version, View::Set(&set)).expect("memory takes everything");
        assert_eq!((&bytes[..9], bytes[9]), (format!("REDIS{version:04}").as_bytes(), kind));
        assert_eq!(read(&bytes).expect("it is whole"), ["key key set listpack None None", "end Right"]);
    }
    assert!(file_of(10, View::Hash(hash.view())).is_ok());
    hash.set_deadline(b"field", Some(5_000));
    let refused = file_of(11, View::Hash(hash.view())).expect_err("it has no form for that").to_string();
    assert_eq!(refused, "version 11 of the RDB format has no hashes with fields that expire, as 'key' is");
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused_with_an_offset_within_it() {
    let bytes = sample(OPTIONS);
    for end in 0..bytes.len() {
        let fault = read(&bytes[..end]).expect_err("it is cut");
        assert!(matches!(fault.reason, FaultReason::Short), "cut at {end}: {fault:?}");
        assert!(fault.offset <= end as u64, "cut at {end}: {fault:?}");
    }
}

#[test]
fn a_file_with_any_bit_flipped_is_refused() {
    let bytes = sample(OPTIONS);
    // Not those of the version: files of versions before 5 have no checksum.
    let version = 8 * b"REDIS".len()..8 * b"REDIS0012".len();
    for bit in (0..8 * bytes.len()).filter(|bit| !version.contains(bit)) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&flipped).is_err(), "bit {bit}");
    }
}

#[test]
fn bytes_behind_the_end_are_not_looked_at() {
    let mut bytes = sample(OPTIONS);
    let records = read(&bytes).expect("it is whole");
    bytes.extend_from_slice(b"garbage");
    assert_eq!(read(&bytes).expect("it is whole"), records);
}

/// A file with these bytes between its magic and its end.
fn file(magic: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = [magic, body, b"\xff"].concat();
    bytes.extend_from_slice(&crc64(&bytes).to_le_bytes());
    bytes
}

#[test]
fn the_versions_of_redis_and_that_of_valkey_are_known() {
    for magic in [b"REDIS0005", b"REDIS0012", b"REDIS0015", b"VALKEY080"] {
        assert_eq!(read(&file(magic, b"")).expect("it is known"), ["end Right"]);
    }
    assert_eq!(read(b"REDIS0004\xff").expect("it is known"), ["end Missing"]);
    for (magic, version) in [(b"REDIS0000", 0), (b"REDIS0016", 16), (b"REDIS0080", 80), (b"VALKEY012", 12)] {
        let fault = read(&file(magic, b"")).expect_err("it is unknown");
        assert_eq!(fault.to_string(), format!("Can't handle RDB format version {version}"));
    }
    for magic in [b"RODIS0012", b"REDIS00x2", b"VALKEY+80"] {
        let fault = read(&file(magic, b"")).expect_err("it is no file");
        assert_eq!(fault.to_string(), "Wrong signature trying to load DB from file");
    }
}

#[test]
fn type_22_is_a_hash_with_deadlines_in_both_dialects_and_its_bytes_differ() {
    let valkey = b"\x16\x01h\x02\x01a\x011\xff\xff\xff\xff\xff\xff\xff\xff\x01b\x012\x00\x00\x00\x00\x00\x01\x00\x00";
    assert_eq!(read(&file(b"VALKEY080", valkey)).expect("it is whole")[0], "key h hash listpackex None None");
    let redis = b"\x16\x01h\x02\x00\x01a\x011\x81\x00\x00\x01\x8c\x00\x00\x00\x00\x01b\x012";
    assert_eq!(read(&file(b"REDIS0012", redis)).expect("it is whole")[0], "key h hash listpackex None None");
    let fault = read(&file(b"VALKEY080", b"\x18\x01h")).expect_err("Valkey has no such type");
    assert_eq!(fault.explained(), "Unknown RDB encoding type 24 (at offset 9, type 24, key 'h')");
}

#[test]
fn a_collection_without_elements_is_no_key_and_no_fault() {
    // Two tables and a listpack.
    for body in [&b"\x02\x01s\x00"[..], b"\x04\x01h\x00", b"\x10\x01h\x07\x07\0\0\0\0\0\xff"] {
        assert!(read(&file(b"REDIS0012", body)).expect("it is whole")[0].ends_with("empty None None"), "{body:?}");
    }
}

#[test]
fn data_of_modules_are_refused_by_the_name_of_the_module() {
    // The id of the module type "ReJSON-RL", version 3.
    let id = b"\x81\x45\xe2\x49\x38\xdf\x91\x08\xc3";
    for (code, what) in [(b"\xf7".as_slice(), "AUX module data"), (b"\x07\x01k", "module data")] {
        let fault = read(&file(b"REDIS0012", &[code, id].concat())).expect_err("there are no modules");
        assert!(fault.to_string().starts_with(&format!("The RDB file contains {what} I can't load")), "{fault}");
    }
}

#[test]
fn a_claimed_length_takes_no_memory() {
    let body = b"\x00\x01k\x81\x40\0\0\0\0\0\0\0x";
    let fault = read(&file(b"REDIS0012", body)).expect_err("it is too short");
    assert!(matches!(fault.reason, FaultReason::Short), "{fault:?}");
    assert_eq!(
        fault.explained(),
        "Short read or OOM loading DB. Unrecoverable error, aborting now. (at offset 9, type 0, key 'k')"
    );
}

/// A file of several windows with hashes, and a text here and there; `compresses` as in the options.
fn hashes(count: usize, compresses: bool) -> Vec<u8> {
    let mut saver = Saver::begin(Vec::new(), Options { compresses, ..OPTIONS });
    saver.database(0, count, 0);
    for number in 0..count {
        let (mut hash, key) = (Hash::new(), format!("hash {number}"));
        for field in 0..20 {
            hash.insert(format!("field {field}").as_bytes(), format!("{}", number * field).as_bytes(), &forms().hash);
        }
        saver.entry(saved(key.as_bytes(), View::Hash(hash.view()))).expect("memory takes everything");
        if number % 100 == 0 {
            let text = View::Text(TextView::Bytes(b"between"));
            let key = format!("text {number}");
            saver.entry(saved(key.as_bytes(), text)).expect("memory takes everything");
        }
    }
    saver.finish().expect("memory takes everything").0
}

/// The records of a file up to a fault, if there is one, each on its own: no other thread builds anything.
fn read_alone(bytes: &[u8]) -> (Vec<String>, Option<String>) {
    read_with(bytes, |loader| loader.windows_without = u32::MAX)
}

fn read_with(bytes: &[u8], prepare: impl FnOnce(&mut Loader<&[u8]>)) -> (Vec<String>, Option<String>) {
    let mut records = Vec::new();
    let mut loader = Loader::open(bytes, true).expect("the header is right");
    prepare(&mut loader);
    loop {
        let next = loader.next(&forms(), |record| {
            records.push(shown_with_value(record));
            Ok(())
        });
        match next {
            Ok(true) => {}
            Ok(false) => return (records, None),
            Err(fault) => return (records, Some(fault.explained())),
        }
    }
}

/// A record, as text, with the checksum of its value.
fn shown_with_value(record: Record<'_>) -> String {
    let checksum = match &record {
        Record::Entry(Entry { value: Loaded::Value(value), .. }) => crc64(&dump(value.view(), false)),
        _ => 0,
    };
    format!("{} {checksum}", shown(record))
}

#[test]
fn what_is_built_ahead_is_what_one_thread_reads() {
    for compresses in [false, true] {
        let bytes = hashes(20_000, compresses);
        assert!(bytes.len() > 10 * (256 << 10), "{}", bytes.len());
        let alone = read_alone(&bytes);
        assert_eq!((alone.0.len(), &alone.1), (20_000 + 200 + 3, &None));
        assert!(read_with(&bytes, |_| {}) == alone);
    }
}

#[test]
fn a_fault_in_a_block_that_is_built_ahead_is_found_where_one_thread_finds_it() {
    let bytes = hashes(20_000, false);
    let mut generator = fastrand::Rng::with_seed(11);
    for _ in 0..30 {
        let mut damaged = bytes.clone();
        damaged[generator.usize(9..bytes.len())] ^= 1 << generator.u8(..8);
        damaged.truncate(generator.usize(bytes.len() / 2..2 * bytes.len()));
        let alone = read_alone(&damaged);
        assert!(alone.1.is_some());
        assert!(read_with(&damaged, |_| {}) == alone, "{:?}", alone.1);
    }
}

#[test]
fn what_is_behind_a_file_that_was_built_ahead_is_left() {
    let file = hashes(20_000, false);
    let bytes = [&file[..], &b"*1\r\n$4\r\nPING\r\n".repeat(100_000)].concat();
    let mut loader = Loader::open(&bytes[..], true).expect("the header is right");
    while loader.next(&forms(), |_| Ok(())).expect("it is whole") {}
    let (mut rest, offset) = loader.into_rest();
    let mut behind = Vec::new();
    std::io::Read::read_to_end(&mut rest, &mut behind).expect("memory gives everything");
    assert_eq!(offset, file.len() as u64);
    assert!(behind == bytes[file.len()..]);
}

/// Keys with values of several sizes: texts, hashes and sets, of which one is large.
fn many_values() -> Vec<Value> {
    let sizes = (0..10_000).map(|number| if number == 5_000 { 40_000 } else { number % 30 });
    let values = sizes.map(|size| match size % 3 {
        0 => Value::Text(Text::of(vec![b'x'; size])),
        1 => {
            let mut hash = Hash::new();
            (0..size).for_each(|field| _ = hash.insert(format!("{field}").as_bytes(), b"value", &forms().hash));
            Value::Hash(hash)
        }
        _ => {
            let mut set = Set::new();
            (0..size).for_each(|member| _ = set.insert(format!("member {member}").as_bytes(), &forms().set));
            Value::Set(set)
        }
    });
    values.collect()
}

/// The file of some values, which `add` adds to it.
fn filled(values: &[Value], add: impl FnOnce(&mut Saver<Vec<u8>>, &[SavedKey<'_>]) -> std::io::Result<()>) -> Vec<u8> {
    let names: Vec<String> = (0..values.len()).map(|number| format!("key {number}")).collect();
    let keys: Vec<_> = names.iter().zip(values).map(|(name, value)| saved(name.as_bytes(), value.view())).collect();
    let mut saver = Saver::begin(Vec::new(), OPTIONS);
    saver.database(0, keys.len(), 0);
    add(&mut saver, &keys).expect("memory takes everything");
    saver.finish().expect("memory takes everything").0
}

#[test]
fn what_several_threads_serialize_is_what_one_does() {
    let values = many_values();
    let alone = filled(&values, |saver, keys| keys.iter().try_for_each(|&saved| saver.entry(saved)));
    let mut count = 0;
    let together = filled(&values, |saver, keys| {
        saver.entries(keys.len(), keys.iter().copied(), Vec::into_iter, || {
            count += 1;
            Ok(())
        })
    });
    assert!(together == alone);
    assert_eq!(count, values.len());
}

#[test]
fn a_save_by_several_threads_ends_with_the_first_error() {
    let stop = |keys: usize| {
        let (values, mut count) = (many_values(), 0);
        let mut result = Ok(());
        filled(&values, |saver, all| {
            result = saver.entries(all.len(), all.iter().copied(), Vec::into_iter, || {
                count += 1;
                if count > keys { Err(std::io::Error::other("stopped")) } else { Ok(()) }
            });
            Ok(())
        });
        (result.map_err(|error| error.to_string()), count)
    };
    assert_eq!(stop(6_000), (Err("stopped".to_owned()), 6_001));

    let mut timed = Hash::new();
    timed.insert(b"field", b"value", &forms().hash);
    timed.set_deadline(b"field", Some(5_000));
    let mut saver = Saver::begin(Vec::new(), Options { version: 11, ..OPTIONS });
    let keys = std::iter::repeat_n(saved(b"key", View::Hash(timed.view())), 10_000);
    let refused =
        saver.entries(10_000, keys, Vec::into_iter, || Ok(())).expect_err("it has no form for that").to_string();
    assert_eq!(refused, "version 11 of the RDB format has no hashes with fields that expire, as 'key' is");
}
