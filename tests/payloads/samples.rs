//! Commands that create a key of any type, in any encoding.

use fastrand::Rng;

/// A command as its words.
pub(crate) type Words = Vec<Vec<u8>>;

/// Commands after which `key` most likely holds something.
pub(crate) fn sample(rng: &mut Rng) -> Vec<Words> {
    match rng.u8(..7) {
        0 => vec![command("SET", vec![element(rng)])],
        1 => list(rng),
        2 => set(rng),
        3 => hash(rng),
        4 => timed_hash(rng),
        5 => stream(rng),
        _ => sorted_set(rng),
    }
}

fn command(name: &str, arguments: Vec<Vec<u8>>) -> Words {
    [vec![name.as_bytes().to_vec(), b"key".to_vec()], arguments].concat()
}

/// A number of elements: a few, about the limit of a small encoding, or more.
fn size(rng: &mut Rng) -> usize {
    *rng.choice(&[1, 2, 3, 10, 127, 128, 129, 512, 513, 600]).unwrap_or(&1)
}

fn element(rng: &mut Rng) -> Vec<u8> {
    const NUMBERS: [i64; 14] = [
        0,
        127,
        128,
        -1,
        4095,
        4096,
        -4097,
        32_768,
        -32_769,
        8_388_608,
        2_147_483_648,
        -2_147_483_649,
        i64::MAX,
        i64::MIN,
    ];
    let length = *rng.choice(&[0, 1, 5, 20, 21, 44, 45, 63, 64, 65, 200]).unwrap_or(&0);
    match rng.u8(..10) {
        0..2 => rng.choice(&NUMBERS).unwrap_or(&0).to_string().into_bytes(),
        2 => (rng.i64(..) >> rng.u32(..64)).to_string().into_bytes(),
        3..6 => (0..length).map(|_| rng.u8(b'a'..b'd')).collect(),
        6 => vec![rng.u8(..); rng.usize(..10_000)],
        7 => (0..rng.usize(..9_000)).map(|_| rng.u8(b'a'..b'c')).collect(),
        _ => (0..length).map(|_| rng.u8(..)).collect(),
    }
}

fn short(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..3) {
        0 => rng.i32(-5000..5000).to_string().into_bytes(),
        1 => format!("field:{}", rng.u16(..)).into_bytes(),
        _ => (0..rng.usize(..64)).map(|_| rng.u8(b'x'..=b'z')).collect(),
    }
}

/// Many elements, of which none or any may be long.
fn elements(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (size, all_short) = (size(rng), rng.u8(..4) > 0);
    (0..size).map(|_| if all_short { short(rng) } else { element(rng) }).collect()
}

fn list(rng: &mut Rng) -> Vec<Words> {
    let mut commands = vec![command("RPUSH", elements(rng)), command("LPUSH", elements(rng))];
    commands.truncate(rng.usize(1..=2));
    for _ in 0..rng.usize(..3) {
        commands.push(match rng.u8(..3) {
            0 => command("LPOP", vec![]),
            1 => command("LSET", vec![b"0".to_vec(), element(rng)]),
            _ => command("RPUSH", vec![element(rng)]),
        });
    }
    commands
}

fn set(rng: &mut Rng) -> Vec<Words> {
    let bits = rng.u32(..64);
    let members = if rng.bool() {
        (0..size(rng)).map(|_| (rng.i64(..) >> bits).to_string().into_bytes()).collect()
    } else {
        elements(rng)
    };
    vec![command("SADD", members.clone()), command("SREM", members[..1].to_vec())]
}

fn hash(rng: &mut Rng) -> Vec<Words> {
    let fields = elements(rng);
    let pairs = fields.into_iter().flat_map(|field| [field, short(rng)]).collect();
    vec![command("HSET", pairs)]
}

fn timed_hash(rng: &mut Rng) -> Vec<Words> {
    let mut commands = hash(rng);
    let fields: Vec<Vec<u8>> = commands[0][2..].iter().step_by(2).cloned().collect();
    for field in fields.into_iter().take(*rng.choice(&[1, 3, 700]).unwrap_or(&1)) {
        let deadline_ms = 4_000_000_000_000 + rng.i64(0..100);
        let words = [deadline_ms.to_string().as_str(), "FIELDS", "1"].map(|word| word.as_bytes().to_vec());
        commands.push(command("HPEXPIREAT", [words.to_vec(), vec![field]].concat()));
    }
    commands
}

/// Without `-0`, whose sign only the large form keeps.
fn sorted_set(rng: &mut Rng) -> Vec<Words> {
    const SCORES: [&str; 11] =
        ["0", "1", "-3", "0.1", "1.5", "inf", "-inf", "1e16", "4503599627370497", "9007199254740993", "1e-7"];
    let mut words = Vec::new();
    for member in elements(rng) {
        words.push(match rng.u8(..3) {
            0 => rng.f64().to_string().into_bytes(),
            1 => rng.i32(..).to_string().into_bytes(),
            _ => rng.choice(&SCORES).unwrap_or(&"0").as_bytes().to_vec(),
        });
        words.push(member);
    }
    vec![command("ZADD", words)]
}

/// With entries that share their fields and others, of which some are deleted, and groups that were given some.
fn stream(rng: &mut Rng) -> Vec<Words> {
    let mut commands = Vec::new();
    let entries = size(rng);
    for number in 1..=entries {
        let fields = if rng.u8(..4) > 0 {
            vec![b"field".to_vec(), short(rng)]
        } else {
            vec![short(rng), element(rng), short(rng), short(rng)]
        };
        let id = format!("{}-{}", number / 3 + 1, number).into_bytes();
        commands.push(command("XADD", [vec![id], fields].concat()));
    }
    for number in 1..=entries {
        if rng.u8(..5) == 0 {
            commands.push(command("XDEL", vec![format!("{}-{}", number / 3 + 1, number).into_bytes()]));
        }
    }
    for group in 0..rng.usize(..3) {
        let words = |text: String| text.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Words>();
        commands.push(words(format!("XGROUP CREATE key group-{group} 0")));
        for consumer in 0..rng.usize(..3) {
            let count = rng.usize(1..20);
            commands
                .push(words(format!("XREADGROUP GROUP group-{group} consumer-{consumer} COUNT {count} STREAMS key >")));
        }
        commands.push(words(format!("XACK key group-{group} 1-1 1-2 2-4")));
        commands.push(words(format!("XGROUP CREATECONSUMER key group-{group} idle")));
    }
    commands
}
