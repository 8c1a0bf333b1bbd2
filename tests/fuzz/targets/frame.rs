//! Checks whether bytes begin with one complete, well-formed RESP2 or RESP3 frame.

/// The length of the frame that `bytes` begin with; `None` when it is incomplete or malformed.
pub fn frame_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, header) = (&bytes[1..end], end + 2);
    if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return None;
    }
    match bytes.first()? {
        b'+' | b'-' | b',' | b'(' => Some(header),
        b':' => number(line).map(|_| header),
        b'_' => line.is_empty().then_some(header),
        b'#' => matches!(line, b"t" | b"f").then_some(header),
        b'$' | b'=' => bulk_length(bytes, header, number(line)?),
        b'*' | b'~' | b'>' => elements_length(bytes, header, number(line)?, 1),
        b'%' => elements_length(bytes, header, number(line)?, 2),
        b'|' => {
            let attributes = elements_length(bytes, header, number(line)?, 2)?;
            Some(attributes + frame_length(&bytes[attributes..])?)
        }
        _ => None,
    }
}

fn number(line: &[u8]) -> Option<i64> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

fn bulk_length(bytes: &[u8], header: usize, length: i64) -> Option<usize> {
    if length == -1 {
        return Some(header);
    }
    let end = header + usize::try_from(length).ok()?;
    (bytes.get(end..end + 2)? == b"\r\n").then_some(end + 2)
}

fn elements_length(bytes: &[u8], header: usize, count: i64, per_element: i64) -> Option<usize> {
    if count == -1 {
        return Some(header);
    }
    let mut length = header;
    for _ in 0..count.checked_mul(per_element).filter(|count| *count >= 0)? {
        length += frame_length(bytes.get(length..)?)?;
    }
    Some(length)
}
