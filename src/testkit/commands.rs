//! Short forms of the commands that a test sends most, with Rust types for what they take and return.
//!
//! Each sends its command as [`Client::call`] does, so all that a test does with commands applies to it: faults, the
//! journal, strict mode.

use std::time::Duration;

use super::{CallError, Client, Reply};
use crate::resp::Frame;

impl Client {
    /// Returns the value of a string key, or `None` if the key does not exist.
    ///
    /// ```
    /// let mut client = dunlin::Server::start()?.client()?;
    /// client.set("user:1", "Ann")?;
    /// assert_eq!(client.get("user:1")?.as_deref(), Some(&b"Ann"[..]));
    /// assert_eq!(client.get("user:2")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of [`Client::call`], such as WRONGTYPE for a key of another type.
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CallError> {
        self.call_for(&[b"GET", key.as_ref()], |reply| match reply {
            Frame::Bytes(value) => Some(value.to_vec()),
            _ => None,
        })
    }

    /// Sets a key to a string, without a deadline.
    ///
    /// # Errors
    /// As of [`Client::call`].
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), CallError> {
        self.call_for(&[b"SET", key.as_ref(), value.as_ref()], |_| ())
    }

    /// Sets a key to a string that expires after `time`, which counts in milliseconds.
    ///
    /// # Errors
    /// As of [`Client::call`]: a time of less than a millisecond is refused.
    pub fn set_for(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, time: Duration) -> Result<(), CallError> {
        let time_ms = time.as_millis().to_string();
        self.call_for(&[b"SET", key.as_ref(), value.as_ref(), b"PX", time_ms.as_bytes()], |_| ())
    }

    /// Deletes a key; returns whether it existed.
    ///
    /// # Errors
    /// As of [`Client::call`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<bool, CallError> {
        self.call_for(&[b"DEL", key.as_ref()], |reply| *reply == Frame::Integer(1))
    }

    /// Returns whether a key exists.
    ///
    /// # Errors
    /// As of [`Client::call`].
    pub fn exists(&mut self, key: impl AsRef<[u8]>) -> Result<bool, CallError> {
        self.call_for(&[b"EXISTS", key.as_ref()], |reply| *reply == Frame::Integer(1))
    }

    /// Runs several commands one after the other, as a pipeline does; returns the reply or the error of each.
    ///
    /// ```
    /// let mut client = dunlin::Server::start()?.client()?;
    /// let replies = client.call_all([vec!["RPUSH", "jobs", "a", "b"], vec!["LLEN", "jobs"], vec!["GET", "jobs"]]);
    /// assert_eq!(replies[1], Ok(dunlin::Reply::Integer(2)));
    /// assert!(replies[2].as_ref().is_err_and(|error| error.to_string().starts_with("WRONGTYPE")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call_all<C, W>(&mut self, commands: impl IntoIterator<Item = C>) -> Vec<Result<Reply, CallError>>
    where
        C: IntoIterator<Item = W>,
        W: AsRef<[u8]>,
    {
        commands.into_iter().map(|words| self.call(words)).collect()
    }
}
