//! Requests over HTTP, one for each connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::timeout::TIMEOUT;

/// An answer.
pub struct Answer {
    pub status: u16,
    /// The line of the status and the headers, in lower case.
    pub head: String,
    pub body: String,
}

/// Sends the head of a request, whose lines end with a line end, and reads the answer.
///
/// # Errors
/// Nobody listens there, or what comes is no answer.
pub fn exchange(address: SocketAddr, head: &str) -> io::Result<Answer> {
    exchange_with_body(address, head, b"")
}

/// Sends a body to a path with more headers, each with its line end, and reads the answer.
///
/// # Errors
/// As [`exchange`].
pub fn post(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{headers}");
    exchange_with_body(address, &head, body)
}

fn exchange_with_body(address: SocketAddr, head: &str, body: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    // A server that refuses the head does not read the body.
    let _ = stream.write_all(body);
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let parts = answer.split_once("\r\n\r\n").map(|(head, body)| (head.to_lowercase(), body.to_owned()));
    let status = |head: &str| head.split(' ').nth(1)?.parse().ok();
    let answer = parts.and_then(|(head, body)| Some(Answer { status: status(&head)?, head, body }));
    answer.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Asks for a path with more headers, each with its line end.
///
/// # Errors
/// As [`exchange`].
pub fn get(address: SocketAddr, path: &str, headers: &str) -> io::Result<Answer> {
    // A server does not cut an answer of HTTP 1.0 into chunks.
    exchange(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}"))
}
