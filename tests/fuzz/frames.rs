//! Generates random well-formed replies: every type of RESP3 within every other, as the specification allows.

use fastrand::Rng;

/// Appends a reply to `out`, whose aggregates nest `depth` deep at most.
pub fn write_frame(rng: &mut Rng, depth: u32, out: &mut Vec<u8>) {
    match rng.u8(..if depth == 0 { 11 } else { 16 }) {
        0 => write_line(b'+', &line(rng), out),
        1 => write_line(b'-', &line(rng), out),
        2 | 3 => write_string(b'$', &bytes(rng), out),
        4 => write_string(b'!', &bytes(rng), out),
        5 => {
            let format = if rng.bool() { &b"txt:"[..] } else { b"mkd:" };
            write_string(b'=', &[format, &bytes(rng)].concat(), out);
        }
        6 => {
            let number = rng.i64(..) >> rng.u32(..64);
            write_line(b':', number.to_string().as_bytes(), out);
        }
        7 => write_line(b',', double(rng).as_bytes(), out),
        8 => write_line(b'#', if rng.bool() { b"t" } else { b"f" }, out),
        9 => write_line(b'_', b"", out),
        10 => write_line(b'(', format!("{}{}", rng.i64(..), rng.u64(..)).as_bytes(), out),
        11 | 12 => write_elements(rng, b'*', 1, depth, out),
        13 => write_elements(rng, b'%', 2, depth, out),
        14 => write_elements(rng, b'~', 1, depth, out),
        _ if rng.bool() => write_elements(rng, b'>', 1, depth, out),
        _ => {
            write_line(b'|', b"1", out);
            write_string(b'$', &bytes(rng), out);
            write_frame(rng, 0, out);
            write_frame_without_attributes(rng, depth - 1, out);
        }
    }
}

/// Attributes of attributes, and of nothing, are refused by the other decoder.
fn write_frame_without_attributes(rng: &mut Rng, depth: u32, out: &mut Vec<u8>) {
    let start = out.len();
    write_frame(rng, depth, out);
    while matches!(out[start], b'|' | b'_') {
        out.truncate(start);
        write_frame(rng, depth, out);
    }
}

fn write_elements(rng: &mut Rng, mark: u8, parts: usize, depth: u32, out: &mut Vec<u8>) {
    let count = rng.usize(..5);
    write_line(mark, count.to_string().as_bytes(), out);
    for _ in 0..count * parts {
        write_frame(rng, depth - 1, out);
    }
}

fn write_line(mark: u8, line: &[u8], out: &mut Vec<u8>) {
    out.push(mark);
    out.extend_from_slice(line);
    out.extend_from_slice(b"\r\n");
}

fn write_string(mark: u8, bytes: &[u8], out: &mut Vec<u8>) {
    write_line(mark, bytes.len().to_string().as_bytes(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn line(rng: &mut Rng) -> Vec<u8> {
    (0..rng.usize(..12)).map(|_| *rng.choice(b"abc \"\\\n*$").expect("the list is not empty")).collect()
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    (0..rng.usize(..20)).map(|_| *rng.choice(b"a\r\n\0\xff$*").expect("the list is not empty")).collect()
}

fn double(rng: &mut Rng) -> String {
    let some = ["inf", "-inf", "nan", "0", "-0", "1e300", "-2.5e-10", "0.1"];
    match rng.usize(..some.len() * 2) {
        place if place < some.len() => some[place].to_owned(),
        _ => f64::from_bits(rng.u64(..)).to_string(),
    }
}
