//! Compares the memory that structures report with the memory that they allocate.
//!
//! A counting allocator wraps the system's. Collections and databases must agree to the byte: each of their parts knows
//! its allocations. The allocator's own overhead is not counted on either side. The wrapper also guards the bytes after
//! each allocation.

#![expect(unsafe_code, reason = "an allocator that counts is one; it hands every call on as it is")]

use dunlin::commands::FAMILIES;
use dunlin::engine::state::host::NoHost;
use dunlin::engine::{Engine, Now, Origin, Settings, Table};
use dunlin::keyspace::{Database, KeyHandle, New};
use dunlin::resp::{Request, Span};
use dunlin::value::stream::{self, Id, Stream};
use dunlin::value::vector_set::{Parameters, Quantization};
use dunlin::value::{Hash, List, Set, Text, Value, VectorSet, Zset, hash, list, set, zset};
use fastrand::Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// The bytes that this thread allocated minus those that it freed, which another may have allocated.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// The bytes held now that were not held `before`.
fn held_since(before: usize) -> usize {
    HELD.get().wrapping_sub(before)
}

fn count(less: usize, more: usize) {
    HELD.set(HELD.get().wrapping_add(more).wrapping_sub(less));
}

/// The number of guard bytes after each allocation, which must not change: code that writes there relies on getting
/// more than it requested, as allocators may give.
const GUARD: [u8; 8] = *b"guarding";

/// The layout with room for the guard.
fn guarded(layout: Layout) -> Layout {
    Layout::from_size_align(layout.size() + GUARD.len(), layout.align()).unwrap_or(layout)
}

thread_local! {
    /// The number of guards that were found changed.
    static TRESPASSES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is the system allocator's, with a little more room, which the caller does not know of.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the layout is the caller's, with more bytes.
        let place = unsafe { System.alloc(guarded(layout)) };
        if !place.is_null() {
            // SAFETY: the room after the caller's bytes was allocated above.
            unsafe { place.add(layout.size()).cast::<[u8; 8]>().write_unaligned(GUARD) };
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: every allocation has its guard after it.
        if unsafe { place.add(layout.size()).cast::<[u8; 8]>().read_unaligned() } != GUARD {
            let _ = TRESPASSES.try_with(|found| found.set(found.get() + 1));
        }
        // SAFETY: it was allocated with this layout.
        unsafe { System.dealloc(place, guarded(layout)) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises a size that a layout may have.
        let larger = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller's promises are those of these three calls.
        unsafe {
            let other = self.alloc(larger);
            if !other.is_null() {
                std::ptr::copy_nonoverlapping(place, other, layout.size().min(size));
                self.dealloc(place, layout);
            }
            other
        }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZES: [usize; 6] = [1, 10, 100, 1_000, 10_000, 30_000];

/// A member, a field or an element, now and then a long one.
fn member(number: usize) -> Vec<u8> {
    let length = if number.is_multiple_of(50) { 300 } else { 0 };
    format!("member-{number:0length$}").into_bytes()
}

/// Fills a collection to each of the sizes, empties half of it, and fills it again with others; after each step the
/// reported memory must equal the allocated one. `put` and `take` get the number of an element.
fn check_collection<T>(
    make: impl Fn() -> T,
    put: impl Fn(&mut T, usize),
    take: impl Fn(&mut T, usize),
    memory: impl Fn(&T) -> usize,
) {
    for size in SIZES {
        let before = HELD.get();
        let mut collection = make();
        let check = |collection: &T, when: &str| {
            assert_eq!(memory(collection), held_since(before), "{when}, of {size} elements");
        };
        (0..size).for_each(|number| put(&mut collection, number));
        check(&collection, "filled");
        let mut generator = Rng::with_seed(size as u64);
        let gone: Vec<usize> = (0..size).filter(|_| generator.bool()).collect();
        gone.iter().for_each(|&number| take(&mut collection, number));
        let list = gone.capacity() * size_of::<usize>();
        count(list, 0);
        check(&collection, "halved");
        (size..2 * size).for_each(|number| put(&mut collection, number));
        check(&collection, "filled again");
        count(0, list);
        drop(collection);
        drop(gone);
        assert_eq!(HELD.get(), before, "all is given back");
    }
}

#[test]
fn a_sorted_set_reports_the_memory_that_it_takes() {
    let limits = zset::Limits::default();
    check_collection(
        Zset::new,
        |zset, number| _ = zset.insert(&member(number), (number % 1_000) as f64 / 2.0, &limits),
        |zset, number| _ = zset.remove(&member(number)),
        Zset::memory,
    );
}

#[test]
fn a_set_reports_the_memory_that_it_takes() {
    let limits = set::Limits::default();
    check_collection(
        Set::new,
        |set, number| _ = set.insert(&member(number), &limits),
        |set, number| _ = set.remove(&member(number)),
        Set::memory,
    );
    check_collection(
        Set::new,
        |set, number| _ = set.insert(number.to_string().as_bytes(), &limits),
        |set, number| _ = set.remove(number.to_string().as_bytes()),
        Set::memory,
    );
}

#[test]
fn a_hash_reports_the_memory_that_it_takes() {
    let limits = hash::Limits::default();
    check_collection(
        Hash::new,
        |hash, number| _ = hash.insert(&member(number), &member(number * 7), &limits),
        |hash, number| _ = hash.remove(&member(number)),
        Hash::memory,
    );
}

#[test]
fn a_list_reports_the_memory_that_it_takes() {
    let limits = list::Limits::default();
    check_collection(
        List::new,
        |list, number| {
            let end = if number % 3 == 0 { list::End::Head } else { list::End::Tail };
            list.push(end, [&member(number)[..]], &limits);
        },
        |list, number| _ = list.pop(if number % 2 == 0 { list::End::Head } else { list::End::Tail }, &limits),
        List::memory,
    );
}

#[test]
fn a_stream_reports_the_memory_that_it_takes() {
    let limits = stream::Limits::default();
    let id = |number: usize| Id::new(1 + number as u64, 0);
    check_collection(
        Stream::new,
        |stream, number| {
            let (field, value) = (member(number % 3), member(number));
            stream.log_mut().push(id(number), [&field[..], &value].into_iter(), &limits);
        },
        |stream, number| _ = stream.log_mut().delete(id(number)),
        Stream::memory,
    );
}

#[test]
fn a_vector_set_reports_the_memory_that_it_takes() {
    let parameters = Parameters { dimensions: 3, reduced: None, quantization: Quantization::Q8, links: 4 };
    let make = || VectorSet::with(&parameters, 0, 0);
    let put = |set: &mut VectorSet, number: usize| {
        let mut generator = Rng::with_seed(number as u64);
        let vector = [(); 3].map(|()| generator.f32() - 0.5);
        let attributes = number.is_multiple_of(3).then(|| member(number));
        set.insert(&member(number), &vector, attributes.as_deref(), 8, &mut generator);
    };
    // A thread that has searched keeps memory for its searches, which belongs to no set.
    let mut first = make();
    (0..2).for_each(|number| put(&mut first, number));
    drop(first);
    check_collection(make, put, |set, number| _ = set.remove(&member(number)), VectorSet::memory);
}

#[test]
fn a_consumer_group_reports_the_memory_that_it_takes() {
    const NAMES: [&[u8]; 3] = [b"ann", b"bob", b"a consumer whose name is longer than most"];
    let make = || {
        let mut stream = Stream::new();
        stream.add_group(b"group", Id::MIN, None);
        stream
    };
    let give = |stream: &mut Stream, number: usize| {
        stream.edit_group(b"group", |_, group| {
            let (consumer, _) = group.add_consumer(NAMES[number % NAMES.len()], 1);
            group.assign(Id::new(1 + number as u64, 0), consumer, 1, 1);
        });
    };
    let take = |stream: &mut Stream, number: usize| {
        stream.edit_group(b"group", |_, group| group.acknowledge(Id::new(1 + number as u64, 0)));
    };
    check_collection(make, give, take, Stream::memory);
}

/// A value of any kind and size.
fn value(number: usize) -> Value {
    match number % 8 {
        0 => Value::Text(Text::of(number.to_string().into_bytes())),
        1 => Value::Text(Text::of(vec![b'x'; number % 3_000])),
        2 => {
            let mut hash = Hash::new();
            (0..=number % 20).for_each(|field| _ = hash.insert(&member(field), b"value", &hash::Limits::default()));
            Value::Hash(hash)
        }
        3 => {
            let mut zset = Zset::new();
            (0..=number % 200).for_each(|entry| _ = zset.insert(&member(entry), 1.5, &zset::Limits::default()));
            Value::Zset(zset)
        }
        _ => Value::Text(Text::of(member(number))),
    }
}

fn key(number: usize) -> Vec<u8> {
    member(number * 3)
}

fn put(database: &mut Database, number: usize) {
    let handle = match database.find(&key(number)) {
        Some(handle) => database.replace(handle, New::Value(value(number))).0,
        None => database.insert(&key(number), New::Value(value(number))),
    };
    if !number.is_multiple_of(3) {
        database.set_deadline(handle, Some(1_800_000_000_000 + number as i64 * 977));
    }
}

#[test]
fn a_database_reports_the_memory_that_it_takes() {
    for size in SIZES {
        let before = HELD.get();
        let mut database = Database::new(1);
        let check = |database: &Database, when: &str| {
            assert_eq!(database.memory() + database.slack(), held_since(before), "{when}, of {size} keys");
        };
        (0..size).for_each(|number| put(&mut database, number));
        check(&database, "filled");
        for number in (0..size).filter(|number| number % 7 > 2) {
            let handle = database.find(&key(number)).expect("the key exists");
            database.delete(handle);
        }
        check(&database, "emptied in part");
        (size / 2..2 * size).for_each(|number| put(&mut database, number));
        check(&database, "filled again");
    }
}

#[test]
fn the_memory_of_all_keys_adds_up_to_that_of_their_database() {
    let mut database = Database::new(1);
    (0..60_000).for_each(|number| put(&mut database, number));
    let handles: Vec<KeyHandle> = database.handles().collect();
    let keys: usize = handles.into_iter().map(|handle| database.memory_of(handle)).sum();
    let whole = database.memory();
    assert!(keys.abs_diff(whole) <= whole / 50, "{keys} bytes for all keys, {whole} for the database");
}

/// CVE-2021-3470: a server that used bytes of an allocation beyond the requested size.
#[test]
fn no_byte_is_written_behind_the_end_of_an_allocation() {
    let mut engine =
        Engine::new(Table::of(FAMILIES), Settings::default(), 1, Now::default(), Box::new(NoHost::default()));
    let client = engine.connect(Now::default(), Origin::default()).expect("there is room");
    let mut ask = |words: &[&[u8]]| {
        let (mut buffer, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { start: buffer.len(), end: buffer.len() + word.len() });
            buffer.extend_from_slice(word);
        }
        let (request, mut reply) = (Request::new(&buffer, &spans), Vec::new());
        engine.run(Now::default(), client, request, &mut reply);
        engine.finish(Now::default(), request);
        reply
    };
    let before = TRESPASSES.get();
    let fill = b"for i = 1, 300 do local text = string.rep('x', i * 7 % 400) redis.call('APPEND', 'text', text) \
        redis.call('RPUSH', 'list', text) redis.call('HSET', 'hash', text .. i, text) \
        redis.call('ZADD', 'zset', i, text) redis.call('SADD', 'set', i % 3 == 0 and text or i) \
        redis.call('XADD', 'stream', i .. '-1', text, text) redis.call('PFADD', 'sketch', i, text) \
        redis.call('SETBIT', 'bits', i * 37, 1) \
        redis.call('SETRANGE', 'text', i * 3, text) end return cjson.encode({redis.call('LRANGE', 'list', 0, -1)})";
    for round in 0..5 {
        assert_eq!(ask(&[b"EVAL", fill, b"0"]).first(), Some(&b'$'), "round {round}");
        for key in [&b"text"[..], b"list", b"hash", b"zset", b"set", b"stream", b"sketch", b"bits"] {
            let reply = ask(&[b"DUMP", key]);
            let start = reply.iter().position(|&byte| byte == b'\n').expect("it is a bulk string") + 1;
            let payload = reply[start..reply.len() - 2].to_vec();
            assert_eq!(ask(&[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]), b"+OK\r\n");
        }
        ask(&[b"FLUSHALL"]);
    }
    drop(engine);
    assert_eq!(TRESPASSES.get(), before);
}

/// Nearly empty worlds cost almost nothing: a suite may have one for each of its tests. The timer task of a world is
/// not counted, as it belongs to another thread.
#[test]
fn a_world_with_a_client_and_a_key_takes_some_kilobytes() {
    const MAX_BYTES: usize = 25 << 10;
    let server = dunlin::Server::start().expect("the server starts");
    let each = bytes_a_world(&server, 1000, |client| {
        client.call(["SET", "key", "value"]).expect("it answers");
    });
    assert!(each < MAX_BYTES, "a world takes {each} bytes");
}

/// Worlds share the data of their template, as long as they only read it.
#[test]
fn a_world_of_a_large_template_takes_some_kilobytes_too() {
    const MAX_BYTES: usize = 32 << 10;
    let server = dunlin::Server::builder().frozen().allow_debug().start().expect("the server starts");
    server.call(["DEBUG", "POPULATE", "50000", "key", "64"]).expect("it is answered");
    server.make_template();
    let each = bytes_a_world(&server, 100, |client| {
        assert_eq!(client.call(["STRLEN", "key:777"]).expect("it answers"), 64);
    });
    assert!(each < MAX_BYTES, "a world takes {each} bytes");
}

/// The memory of each of a number of worlds, with a client that does something there; the first of all is not counted.
fn bytes_a_world(server: &dunlin::Server, worlds: usize, act: impl Fn(&mut dunlin::Client)) -> usize {
    let enter = |number: usize| {
        let mut client = server.world(&format!("world-{number}")).and_then(|world| world.client()).expect("it is made");
        act(&mut client);
        client
    };
    let _first = enter(worlds);
    let before = HELD.get();
    let _clients: Vec<dunlin::Client> = (0..worlds).map(enter).collect();
    held_since(before) / worlds
}

/// A test that runs on a cluster has memory left for itself: its nodes share what they can.
#[test]
fn six_idle_nodes_take_less_than_a_megabyte_more_than_one_server() {
    const MAX_BYTES: usize = 1 << 20;
    let held = |start: &dyn Fn() -> dunlin::Server| {
        let before = HELD.get();
        let server = start();
        let bytes = held_since(before);
        drop(server);
        bytes
    };
    let one = held(&|| dunlin::Server::builder().frozen().start().expect("the server starts"));
    let six = held(&|| dunlin::Server::cluster(3).replicas(1).frozen().start().expect("the nodes start"));
    assert!(six < one + MAX_BYTES, "one server takes {one} bytes, six nodes take {six}");
}

#[test]
fn a_hundred_worlds_that_are_clusters_take_less_than_20_megabytes() {
    const MAX_BYTES: usize = (20 << 20) / 100;
    let server = dunlin::Server::cluster(3).replicas(1).frozen().start().expect("the nodes start");
    let each = bytes_a_world(&server, 100, |client| {
        client.call(["SET", "bar", "1"]).expect("it answers");
    });
    assert!(each < MAX_BYTES, "a world of six nodes takes {each} bytes");
}
