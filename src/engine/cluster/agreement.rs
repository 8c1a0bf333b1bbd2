//! Agreement: whether all nodes of a cluster see the same owner of every slot, the same roles and the same failures.
//!
//! A node publishes its [`Opinion`], digests of what it sees, whenever that changes. So a test that waits for agreement
//! compares a few numbers, and no node has to be asked.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::owners::Owners;
use super::{NodeId, View};

/// One node's digests of the owners, roles and failures that all nodes must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opinion {
    owners: u64,
    roles: u64,
    failures: u64,
    /// Nothing is to come that the node knows of and that may change its view: no message over a slow link, no
    /// timeout, no election.
    is_settled: bool,
}

/// The reason why the nodes of a cluster do not agree; nodes are named by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// Messages are not delivered yet.
    Undelivered,
    /// A node ignores the others.
    StaleView(usize),
    /// The link between two nodes is cut.
    CutLink(usize, usize),
    /// The view of a node is about to change.
    Unsettled(usize),
    /// Two nodes see different owners of slots.
    Owners(usize, usize),
    /// Two nodes see different roles, or know different nodes.
    Roles(usize, usize),
    /// Two nodes see different failures.
    Failures(usize, usize),
}

/// The digest of the owners of all slots, and what it was computed from.
#[derive(Clone, Debug)]
pub(super) struct OwnersDigest {
    owners: Owners,
    ids: Vec<NodeId>,
    digest: u64,
}

impl Opinion {
    /// Whether another node sees the same nodes in the same roles.
    pub fn has_same_roles(&self, other: &Opinion) -> bool {
        self.roles == other.roles
    }
}

impl Disagreement {
    /// The first disagreement among the opinions of nodes, by their numbers.
    pub fn among(opinions: &BTreeMap<usize, Opinion>) -> Option<Disagreement> {
        let (first, expected) = opinions.first_key_value()?;
        let differs = |(number, opinion): (&usize, &Opinion)| match () {
            () if opinion.owners != expected.owners => Some(Disagreement::Owners(*first, *number)),
            () if opinion.roles != expected.roles => Some(Disagreement::Roles(*first, *number)),
            () if opinion.failures != expected.failures => Some(Disagreement::Failures(*first, *number)),
            () => None,
        };
        let unsettled = || opinions.iter().find(|(_, opinion)| !opinion.is_settled);
        opinions.iter().find_map(differs).or_else(|| unsettled().map(|(number, _)| Disagreement::Unsettled(*number)))
    }
}

impl Display for Disagreement {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Undelivered => out.write_str("messages are on their way"),
            Disagreement::StaleView(node) => write!(out, "node {node} has a stale view"),
            Disagreement::CutLink(one, other) => write!(out, "the link between nodes {one} and {other} is cut"),
            Disagreement::Unsettled(node) => write!(out, "the view of node {node} is about to change"),
            Disagreement::Owners(one, other) => write!(out, "nodes {one} and {other} see different owners of slots"),
            Disagreement::Roles(one, other) => write!(out, "nodes {one} and {other} see different roles"),
            Disagreement::Failures(one, other) => write!(out, "nodes {one} and {other} see different failures"),
        }
    }
}

impl View {
    /// This node's opinion.
    pub fn opinion(&mut self, is_settled: bool) -> Opinion {
        let owners = self.digest_of_owners();
        let mut roles: Vec<_> = self.nodes().iter().map(|node| (node.id, node.primary)).collect();
        roles.sort_unstable();
        let states = |id| (self.suspects(id), self.has_failed(id));
        let failures = roles.iter().map(|(id, _)| (*id, states(*id))).filter(|(_, states)| *states != (false, false));
        Opinion { owners, roles: digest(&roles), failures: digest(failures), is_settled }
    }

    /// The digest of the owners, computed anew only if they have changed: slots that were dealt out at random have
    /// thousands of runs, and most news is about something else.
    fn digest_of_owners(&mut self) -> u64 {
        let ids: Vec<NodeId> = self.nodes().iter().map(|node| node.id).collect();
        let is_same = |known: &&OwnersDigest| known.owners.are_shared_with(&self.owners) && known.ids == ids;
        if let Some(known) = self.owners_digest.as_ref().filter(is_same) {
            return known.digest;
        }
        let digest = digest(self.owned_ranges().map(|(slots, owner)| (slots, owner.map(|node| node.id))));
        self.owners_digest = Some(OwnersDigest { owners: self.owners.clone(), ids, digest });
        digest
    }
}

/// A number that is the same for the same items in the same order, and else nearly always another one.
fn digest(items: impl IntoIterator<Item = impl Hash>) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.into_iter().for_each(|item| item.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cluster::Node;
    use crate::engine::spec::Now;

    /// The views of three primaries and a replica of the first.
    fn views() -> Vec<View> {
        let node = |seed| Node::of_seed(seed, Now::from_us(0));
        View::of_cluster((1..5).map(node).collect(), 3)
    }

    fn disagreement(views: &[View], is_settled: bool) -> Option<Disagreement> {
        let mut views = views.to_vec();
        let opinions = views.iter_mut().map(|view| view.opinion(is_settled)).enumerate().collect();
        Disagreement::among(&opinions)
    }

    #[test]
    fn nodes_agree_on_the_same_owners_roles_and_failures_once_nothing_is_to_come() {
        let start = views();
        assert_eq!(disagreement(&start, true), None);
        assert_eq!(disagreement(&start, false), Some(Disagreement::Unsettled(0)));
        let [second, third] = [1, 2].map(|place: usize| start[place].myself().id);
        let changed = |node: usize, change: &dyn Fn(&mut View)| {
            let mut views = start.clone();
            change(&mut views[node]);
            disagreement(&views, true)
        };
        assert_eq!(changed(2, &|view| view.assign(7, Some(third))), Some(Disagreement::Owners(0, 2)));
        assert_eq!(changed(3, &|view| view.follow(second)), Some(Disagreement::Roles(0, 3)));
        assert_eq!(changed(1, &|view| view.apply_failure(third, Now::from_us(0))), Some(Disagreement::Failures(0, 1)));
        assert_eq!(changed(2, &|view| view.assign(16383, Some(third))), None, "it owns that slot already");
    }

    #[test]
    fn an_opinion_follows_each_change_of_the_owners_and_of_their_places() {
        let mut view = views().remove(0);
        let (first, third) = (view.opinion(true), view.nodes()[2].id);
        assert_eq!(view.opinion(true), first);
        view.assign(7, Some(third));
        let moved = view.opinion(true);
        assert_ne!(moved.owners, first.owners);
        let fresh = |view: &View| {
            let mut view = view.clone();
            view.owners_digest = None;
            view.opinion(true)
        };
        assert_eq!(moved, fresh(&view));
        view.forget(view.nodes()[1].id, Now::from_us(0));
        assert_ne!(view.opinion(true).owners, moved.owners);
        assert_eq!(view.opinion(true), fresh(&view));
    }
}
