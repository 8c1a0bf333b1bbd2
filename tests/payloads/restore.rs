//! Payloads that are built by hand, and their RESTORE.

use crate::world::World;
use dunlin::rdb;

pub(crate) const DAMAGED: &[u8] = b"-ERR Bad data format\r\n";
pub(crate) const OK: &[u8] = b"+OK\r\n";

/// Adds a footer to a payload, and returns the reply of RESTORE to it.
pub(crate) fn restored(world: &mut World, payload: &[u8]) -> Vec<u8> {
    let payload = rdb::with_footer(payload.to_vec());
    world.send(world.client, &[b"RESTORE", b"key", b"0", &payload, b"REPLACE"]).0
}

/// The bytes of a bulk string.
pub(crate) fn content(reply: &[u8]) -> Option<&[u8]> {
    let start = reply.iter().position(|&byte| byte == b'\n')? + 1;
    (reply.first() == Some(&b'$') && !reply.starts_with(b"$-1")).then(|| &reply[start..reply.len() - 2])
}

/// A short text, with its length before it.
pub(crate) fn text(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("tests write short texts");
    [b"\x80", length.to_be_bytes().as_slice(), bytes].concat()
}

/// A listpack of short texts.
pub(crate) fn listpack(elements: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for element in elements {
        body.push(0x80 | element.len() as u8);
        body.extend_from_slice(element);
        body.push(1 + element.len() as u8);
    }
    let total = (4 + 2 + body.len() as u32 + 1).to_le_bytes();
    [total.as_slice(), &(elements.len() as u16).to_le_bytes(), &body, b"\xff"].concat()
}
