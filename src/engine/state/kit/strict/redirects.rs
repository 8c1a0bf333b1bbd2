//! Commands that were answered with a redirect, until another node of the cluster has got them.
//!
//! The node that redirects keeps the command, and tells the others its digest. The one at which the client sends it
//! again says so. What is left when the findings are read was not sent again: the client takes no redirects, or gave
//! the error to the application.
//!
//! Costs: at most [`MAX`] commands at each node, the oldest of which are forgotten first.

use std::collections::VecDeque;

use crate::engine::cluster::NodeId;
use crate::resp::Request;
use crate::value::hashing::Key;

/// The most commands that a node remembers.
const MAX: usize = 1000;

/// The digest of a command's words.
pub(in crate::engine) fn digest(request: Request<'_>) -> u64 {
    let hash = Key::of(0);
    request.iter().fold(0, |digest: u64, word| hash.hash(word).wrapping_add(digest.rotate_left(5)))
}

/// A command that this node has answered with a redirect.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Redirect {
    pub(in crate::engine) number: u64,
    /// The id and the name of its client.
    pub(in crate::engine) client: u64,
    pub(in crate::engine) client_name: Vec<u8>,
    /// The command, shortened, without secrets.
    pub(in crate::engine) command: String,
    /// The reply, as `MOVED 5061 127.0.0.1:7001`.
    pub(in crate::engine) reply: String,
}

/// The commands that this node has redirected, and that no other one has got.
#[derive(Debug, Default)]
pub(in crate::engine) struct Redirects {
    last: u64,
    waiting: VecDeque<Redirect>,
}

impl Redirects {
    /// The number of the next one.
    pub(in crate::engine) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(in crate::engine) fn add(&mut self, redirect: Redirect) {
        self.waiting.push_back(redirect);
        if self.waiting.len() > MAX {
            self.waiting.pop_front();
        }
    }

    /// The number of the oldest one, if there is any.
    pub(in crate::engine) fn oldest(&self) -> Option<u64> {
        self.waiting.front().map(|redirect| redirect.number)
    }

    /// Removes one that another node has got.
    pub(in crate::engine) fn remove(&mut self, number: u64) {
        self.waiting.retain(|redirect| redirect.number != number);
    }

    pub(in crate::engine) fn waiting(&self) -> impl Iterator<Item = &Redirect> {
        self.waiting.iter()
    }

    pub(in crate::engine) fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// The commands that other nodes have redirected, and that may come here.
#[derive(Debug, Default)]
pub(in crate::engine) struct Expected {
    /// Each with its digest, the node, and its number there.
    commands: VecDeque<(u64, NodeId, u64)>,
}

impl Expected {
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Adds a command that a node has redirected, and drops those that the node no longer remembers: those with numbers
    /// below `oldest`.
    pub(in crate::engine) fn add(&mut self, digest: u64, from: NodeId, number: u64, oldest: u64) {
        self.commands.retain(|(_, node, number)| *node != from || *number >= oldest);
        self.commands.push_back((digest, from, number));
        if self.commands.len() > MAX {
            self.commands.pop_front();
        }
    }

    /// Removes a command of a node that has come to another one.
    pub(in crate::engine) fn remove(&mut self, from: NodeId, number: u64) {
        self.commands.retain(|(_, node, waiting)| (*node, *waiting) != (from, number));
    }

    /// Removes a command that has come: returns the node that redirected it, and its number there.
    pub(in crate::engine) fn take(&mut self, request: Request<'_>) -> Option<(NodeId, u64)> {
        let wanted = digest(request);
        let place = self.commands.iter().position(|(digest, ..)| *digest == wanted)?;
        self.commands.remove(place).map(|(_, from, number)| (from, number))
    }
}
