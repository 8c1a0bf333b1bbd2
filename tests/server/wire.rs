//! A raw client: tests give the exact bytes to send and to expect.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::timeout::TIMEOUT;

/// Bytes out, bytes in.
pub struct Wire<S> {
    stream: S,
}

/// Connects over TCP.
pub fn connect(address: SocketAddr) -> Wire<TcpStream> {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time-out can be set");
    stream.set_nodelay(true).expect("small packets can be sent at once");
    Wire::new(stream)
}

impl<S: Read + Write> Wire<S> {
    pub fn new(stream: S) -> Wire<S> {
        Wire { stream }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Sends all of `bytes`; false when the server has closed.
    pub fn sends(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Sends what the server takes before it closes.
    pub fn send_as_far_as_it_goes(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Reads as many bytes as `expected` has and compares.
    pub fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let bytes = self.read_bytes(expected.len());
        assert_eq!(bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    pub fn ask(&mut self, bytes: impl AsRef<[u8]>, expected: impl AsRef<[u8]>) {
        self.send(bytes);
        self.expect(expected);
    }

    /// Reads this number of bytes.
    pub fn read_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("the server answers");
        bytes
    }

    /// Reads until `end` has come.
    pub fn read_until(&mut self, end: &[u8]) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end) {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("the server answers");
            bytes.extend(byte);
        }
        String::from_utf8(bytes).expect("it is text")
    }

    /// Reads a bulk string; returns its bytes.
    pub fn read_bulk(&mut self) -> Vec<u8> {
        let length = self.read_length("$");
        let mut bytes = self.read_bytes(length + 2);
        bytes.truncate(length);
        bytes
    }

    /// Reads a request; returns its words.
    pub fn read_request(&mut self) -> Vec<Vec<u8>> {
        (0..self.read_length("*")).map(|_| self.read_bulk()).collect()
    }

    fn read_length(&mut self, mark: &str) -> usize {
        let line = self.read_until(b"\r\n");
        let digits = line.strip_prefix(mark).map(str::trim_end);
        digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no length after {mark}: {line}"))
    }

    /// Reads until the server closes the connection; returns everything that arrived.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => {}
            // The server closed while some of our bytes were unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the server neither answers nor closes: {error}"),
        }
        bytes
    }
}

/// A request as clients send it.
pub fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The bulk string that a reply is.
pub fn bulk(text: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}
