//! RESTORE of every form that a payload can have, with the part that repeats n times.

use super::measure::too_fast;
use crate::support::processor_time::processor_time;
use crate::world::World;
use dunlin::rdb;
use std::time::Duration;

/// A form: what it is, and its payload of n elements.
type Form = (&'static str, fn(usize) -> Vec<u8>);

const FORMS: &[Form] = &[
    ("text", |n| [vec![0], text(&vec![b'x'; n])].concat()),
    ("list", |n| [vec![1], many(n, |at| text(&name(at)))].concat()),
    ("list of a ziplist", |n| [vec![10], text(&ziplist(n))].concat()),
    ("list of ziplists", |n| [vec![14], many(n, |_| text(&ziplist(1)))].concat()),
    ("list of listpacks", |n| {
        [vec![18], many(n, |_| [vec![2], text(&listpack(1, |_| b"x".to_vec()))].concat())].concat()
    }),
    ("list of one listpack", |n| [vec![18, 1, 2], text(&listpack(n, name))].concat()),
    ("list of large elements", |n| [vec![18], many(n, |_| [vec![1], text(&[b'x'; 50])].concat())].concat()),
    ("set", |n| [vec![2], many(n, |at| text(&name(at)))].concat()),
    ("set of digits", |n| [vec![2], many(n, |at| text((n - at).to_string().as_bytes()))].concat()),
    ("set of integers", |n| [vec![11], text(&intset(n))].concat()),
    ("set of a listpack", |n| [vec![20], text(&listpack(n, name))].concat()),
    ("sorted set of digits", |n| [vec![3], many(n, |at| [text(&name(at)), vec![1, b'1']].concat())].concat()),
    ("sorted set", |n| [vec![5], many(n, |at| [text(&name(at)), double(n - at)].concat())].concat()),
    ("sorted set of a listpack", |n| [vec![17], text(&listpack(2 * n, name_or_one))].concat()),
    ("hash", |n| [vec![4], many(n, |at| [text(&name(at)), text(b"v")].concat())].concat()),
    ("hash of a zipmap", |n| [vec![9], text(&zipmap(n))].concat()),
    ("hash of a listpack", |n| [vec![16], text(&listpack(2 * n, name_or_one))].concat()),
    ("hash with deadlines", |n| {
        let field = |at| [number(n - at), text(&name(at)), text(b"v")].concat();
        [vec![24], 2_000_000_000_000_u64.to_le_bytes().to_vec(), many(n, field)].concat()
    }),
    ("stream of blocks", |n| {
        let block = |at| [text(&raw(at + 1)), text(&block(1, 0))].concat();
        [vec![15], many(n, block), number(n), id(n), vec![0]].concat()
    }),
    ("stream of one block", |n| [stream(n, 0), vec![0]].concat()),
    ("stream of dead entries", |n| [stream(1, n), vec![0]].concat()),
    ("stream of a long field", |n| {
        let entries = n.isqrt();
        [stream_of(entries, 0, 100 * entries), vec![0]].concat()
    }),
    ("groups", |n| [stream(1, 0), many(n, |at| [text(&name(n - at)), id(1), vec![0, 0]].concat())].concat()),
    ("consumers", |n| [stream(1, 0), group(&[]), many(n, |at| consumer(&name(n - at), &[]))].concat()),
    ("consumers with an entry each", |n| {
        let ids: Vec<usize> = (1..=n).collect();
        [stream(1, 0), group(&ids), many(n, |at| consumer(&name(at), &[n - at]))].concat()
    }),
    ("pending entries of one consumer", |n| {
        let (ids, back): (Vec<usize>, Vec<usize>) = ((1..=n).collect(), (1..=n).rev().collect());
        [stream(1, 0), group(&ids), vec![1], consumer(b"c", &back)].concat()
    }),
];

#[test]
fn the_cost_of_a_payload_grows_with_its_length() {
    let only = std::env::var("DUNLIN_GROWTH").unwrap_or_default();
    let forms = FORMS.iter().filter(|(form, _)| form.contains(&only));
    let slow: Vec<String> = forms.filter_map(|(form, make)| too_fast(form, |size| restored(*make, size))).collect();
    assert!(slow.is_empty(), "eight times as long takes more than twenty times the work:\n{}", slow.join("\n"));
}

/// The work of a RESTORE, and of a DUMP, a copy and a removal of what it made.
fn restored(make: fn(usize) -> Vec<u8>, size: usize) -> Duration {
    let mut world = World::fresh();
    let payload = rdb::with_footer(make(size));
    let start = processor_time();
    let (reply, _) = world.send(world.client, &[b"RESTORE", b"key", b"0", &payload]);
    assert_eq!(reply, b"+OK\r\n", "{size} elements");
    for command in ["DUMP key", "COPY key other", "DEL key other"] {
        world.ask(command);
    }
    processor_time() - start
}

/// A whole library, and one with many functions. Their number is bounded by the time that loading may take.
#[test]
fn the_cost_of_restoring_libraries_grows_with_their_length() {
    let work = |size: usize| {
        let mut world = World::fresh();
        let function = |at: usize| format!("redis.register_function('f{at}',function()end)\n");
        let functions: String = (0..size / 64).map(function).collect();
        let comment = "-".repeat(size);
        let code = format!("#!lua name=lib\n--{comment}\n{functions}");
        let (reply, _) = world.send(world.client, &[b"FUNCTION", b"LOAD", code.as_bytes()]);
        assert_eq!(reply, b"$3\r\nlib\r\n");
        let (dump, _) = world.send(world.client, &[b"FUNCTION", b"DUMP"]);
        let start = dump.iter().position(|&byte| byte == b'\n').expect("it is a bulk string") + 1;
        let payload = &dump[start..dump.len() - 2];
        let start = processor_time();
        assert_eq!(world.send(world.client, &[b"FUNCTION", b"RESTORE", payload, b"REPLACE"]).0, b"+OK\r\n");
        processor_time() - start
    };
    assert_eq!(too_fast("FUNCTION RESTORE", work), None);
}

/// A number, and then as many parts.
fn many(count: usize, part: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    [number(count), (0..count).flat_map(part).collect()].concat()
}

fn name(at: usize) -> Vec<u8> {
    format!("name{at:07}").into_bytes()
}

fn name_or_one(at: usize) -> Vec<u8> {
    if at.is_multiple_of(2) { name(at) } else { b"1".to_vec() }
}

fn number(number: usize) -> Vec<u8> {
    [b"\x81".as_slice(), &(number as u64).to_be_bytes()].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [&number(bytes.len()), bytes].concat()
}

fn double(score: usize) -> Vec<u8> {
    (score as f64).to_le_bytes().to_vec()
}

fn packed(body: &[u8], count: usize) -> Vec<u8> {
    let total = (4 + 2 + body.len() as u32 + 1).to_le_bytes();
    [total.as_slice(), &(count.min(65_535) as u16).to_le_bytes(), body, b"\xff"].concat()
}

/// A listpack of short texts.
fn listpack(count: usize, element: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut body = Vec::new();
    for element in (0..count).map(element) {
        body.push(0x80 | element.len() as u8);
        body.extend_from_slice(&element);
        body.push(1 + element.len() as u8);
    }
    packed(&body, count)
}

fn ziplist(count: usize) -> Vec<u8> {
    let elements: Vec<u8> = (0..count).flat_map(|at| [if at == 0 { 0 } else { 3 }, 1, b'x']).collect();
    let last = (10 + 3 * (count - 1)) as u32;
    let total = (10 + elements.len() + 1) as u32;
    let count = (count.min(65_535) as u16).to_le_bytes();
    [&total.to_le_bytes()[..], &last.to_le_bytes(), &count, &elements, b"\xff"].concat()
}

fn zipmap(count: usize) -> Vec<u8> {
    let field = |at| [vec![11], name(at), vec![1, 0, b'v']].concat();
    [vec![254], (0..count).flat_map(field).collect(), vec![255]].concat()
}

fn intset(count: usize) -> Vec<u8> {
    let numbers = (0..count as u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    [&4_u32.to_le_bytes()[..], &(count as u32).to_le_bytes(), &numbers].concat()
}

fn raw(ms: usize) -> Vec<u8> {
    [(ms as u64).to_be_bytes(), [0; 8]].concat()
}

fn id(ms: usize) -> Vec<u8> {
    [number(ms), number(0)].concat()
}

/// A listpack of live entries, followed by deleted ones.
fn block(live: usize, dead: usize) -> Vec<u8> {
    block_of(live, dead, 1)
}

fn block_of(live: usize, dead: usize, field_bytes: usize) -> Vec<u8> {
    let (mut body, mut count) = (Vec::new(), 0);
    let mut integer = |body: &mut Vec<u8>, value: usize| {
        body.extend([[0xf4].as_slice(), &(value as u64).to_le_bytes(), &[9]].concat());
        count += 1;
    };
    [live, dead, 1].into_iter().for_each(|value| integer(&mut body, value));
    body.push(0xf0);
    body.extend((field_bytes as u32).to_le_bytes());
    body.extend(std::iter::repeat_n(b'f', field_bytes));
    body.extend(way_back(5 + field_bytes));
    integer(&mut body, 0);
    for at in 0..live + dead {
        [if at < live { 2 } else { 3 }, at, 0].into_iter().for_each(|value| integer(&mut body, value));
        body.extend(b"\x81v\x02");
        integer(&mut body, 4);
    }
    packed(&body, count + 1 + live + dead)
}

/// The length of an element, in groups of seven bits.
fn way_back(length: usize) -> Vec<u8> {
    let groups = (0..5).rev().map(|group| (length >> (7 * group)) as u8 & 0x7f);
    let mut groups: Vec<u8> = groups.skip_while(|&group| group == 0).collect();
    groups[1..].iter_mut().for_each(|group| *group |= 0x80);
    groups
}

/// A stream of one block, as Redis 5 wrote it, up to its groups.
fn stream(live: usize, dead: usize) -> Vec<u8> {
    stream_of(live, dead, 1)
}

fn stream_of(live: usize, dead: usize, field_bytes: usize) -> Vec<u8> {
    let block = block_of(live, dead, field_bytes);
    [vec![15, 1], text(&raw(1)), text(&block), number(live), id(live + dead)].concat()
}

/// One group that has these entries pending, up to its consumers.
fn group(pending: &[usize]) -> Vec<u8> {
    let pending = many(pending.len(), |at| [raw(pending[at]), vec![0; 8], vec![1]].concat());
    [vec![1], text(b"group"), id(1), pending].concat()
}

fn consumer(name: &[u8], pending: &[usize]) -> Vec<u8> {
    [text(name), vec![0; 8], many(pending.len(), |at| raw(pending[at]))].concat()
}
