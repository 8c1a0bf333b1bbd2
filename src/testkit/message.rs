//! A message of a subscription, as a test reads it.

use super::Reply;

/// A message that was published to a channel to which a [`Client`](super::Client) is subscribed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The pattern that matched the channel (PSUBSCRIBE); `None` if the channel itself is subscribed to.
    pub pattern: Option<Vec<u8>>,
    /// The channel, or shard channel, that it was published to.
    pub channel: Vec<u8>,
    /// The content of the message.
    pub payload: Vec<u8>,
}

impl Message {
    /// The message in a push; `None` if the push is of another kind, such as the confirmation of a subscription.
    pub(super) fn of(reply: &Reply) -> Option<Message> {
        let Reply::Push(items) = reply else { return None };
        let words: Vec<&[u8]> = items.iter().filter_map(Reply::bytes).collect();
        match words[..] {
            [b"message" | b"smessage", channel, payload] => {
                Some(Message { pattern: None, channel: channel.to_vec(), payload: payload.to_vec() })
            }
            [b"pmessage", pattern, channel, payload] => {
                Some(Message { pattern: Some(pattern.to_vec()), channel: channel.to_vec(), payload: payload.to_vec() })
            }
            _ => None,
        }
    }
}
