//! One run: a cluster, what happens to it by chance, and what must hold after each step and in the end.

mod failovers;
mod members;
mod moves;
mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use dunlin::engine::cluster::NodeId;
use dunlin::{CallError, Client, Reply, Server, World};

use crate::history::{History, Reason};
use moves::OpenMove;

/// Keys of slots in all parts of the range, each with its slot.
const KEYS: [(&str, u16); 6] =
    [("bar", 5061), ("abc", 7638), ("foo", 12182), ("b", 3300), ("a", 15495), ("hello", 866)];

const STEPS: usize = 40;

/// The longest delay of a link.
const LONGEST_DELAY: Duration = Duration::from_secs(3);

/// The longest delay of a link when all links have one.
const LONGEST_JITTER: Duration = Duration::from_millis(200);

/// The most redirects that a client follows.
const MAX_REDIRECTS: usize = 5;

/// The words of CLUSTER NODES by which a node says that it takes another one for failed or disconnected.
const FAILURE_WORDS: [&str; 3] = ["fail", "fail?", "disconnected"];

/// A cluster to which things happen as a seed chooses them.
pub struct Simulation {
    server: Server,
    /// The nodes by their numbers, those that were removed included.
    nodes: Vec<World>,
    /// The numbers of the nodes that there are.
    members: BTreeSet<usize>,
    added: usize,
    removed: usize,
    clients: Vec<Option<Client>>,
    paused: BTreeSet<usize>,
    generator: fastrand::Rng,
    history: History,
    story: String,
    /// Whether a node may have taken an epoch without a majority's votes: two nodes may have taken the same one then.
    has_unvoted_epochs: bool,
    /// How often that was over.
    settled: usize,
    /// How many writes a replica was ordered to leave out.
    left_out: usize,
    has_slow_links: bool,
    has_moved_keys: bool,
    /// The move of a slot that has begun and not ended.
    open_move: Option<OpenMove>,
    /// The keys whose slot was to move, and has not moved since.
    given_up: BTreeSet<usize>,
    /// The keys whose slot has moved, and not all nodes have heard of it.
    moved_unheard: BTreeSet<usize>,
    /// The shard of each node after the last step.
    shards: Vec<NodeId>,
    /// What must not have happened, and has.
    fault: Option<String>,
    is_printed: bool,
}

/// A node's knowledge of itself; the last one if it is down.
struct Facts {
    id: NodeId,
    shard: NodeId,
    epoch: u64,
    /// Whether it owns the slot that was asked for.
    owns_slot: bool,
    primary: Option<NodeId>,
    /// Whether it is connected to its primary.
    is_linked: bool,
    offset: u64,
}

impl Simulation {
    /// The cluster of a seed. Each step is printed if `is_printed`.
    pub fn new(seed: u64, is_printed: bool) -> Simulation {
        let mut generator = fastrand::Rng::with_seed(seed);
        let (primaries, replicas) = (generator.u16(3..=4), generator.u16(0..=2));
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let builder = Server::cluster(primaries).replicas(replicas).seed(seed).frozen_at(moment);
        let server = builder.start().expect("the nodes start");
        let nodes = server.nodes();
        let clients = nodes.iter().map(|node| node.client().ok()).collect();
        let members: BTreeSet<usize> = (0..nodes.len()).collect();
        let mut simulation = Simulation {
            server,
            nodes,
            members,
            added: 0,
            removed: 0,
            clients,
            paused: BTreeSet::new(),
            generator,
            history: History::default(),
            story: String::new(),
            has_unvoted_epochs: false,
            settled: 0,
            left_out: 0,
            has_slow_links: false,
            has_moved_keys: false,
            open_move: None,
            given_up: BTreeSet::new(),
            moved_unheard: BTreeSet::new(),
            shards: Vec::new(),
            fault: None,
            is_printed,
        };
        simulation.shards = simulation.members.iter().map(|node| simulation.facts(*node, 0).shard).collect();
        simulation
    }

    /// The story so far, a step in each line.
    pub fn story(&self) -> &str {
        &self.story
    }

    /// Runs the steps, connects all nodes again, and returns how many writes were kept, and lost for each reason, and
    /// how often each event happened that must happen in some run.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn run(&mut self) -> Result<BTreeMap<Reason, u64>, String> {
        for _ in 0..STEPS {
            self.step();
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            self.note_new_members();
            self.note_disturbed_move();
            self.note_arrived_writes();
            self.note_settled_epochs();
            self.note_partial_views();
            if !self.has_unvoted_epochs {
                self.check_epochs()?;
            }
        }
        self.heal();
        self.note_new_members();
        self.check_epochs()?;
        self.check_members()?;
        self.check_agreement()?;
        self.check_failures()?;
        let lists: Vec<Vec<u64>> = (0..KEYS.len()).map(|key| self.list(key)).collect::<Result<_, String>>()?;
        let mut counts = self.history.check(&lists)?;
        let events = [
            ("nodes added", self.added),
            ("nodes removed", self.removed),
            ("epochs settled", self.settled),
            ("left out", self.left_out),
        ];
        counts.extend(events.map(|(event, count)| (event, count as u64)));
        Ok(counts)
    }

    fn tell(&mut self, line: &str) {
        if self.is_printed {
            println!("{line}");
        }
        self.story.push_str(line);
        self.story.push('\n');
    }

    fn step(&mut self) {
        match self.generator.u8(..100) {
            0..46 => self.write(),
            46..48 => self.add_node(),
            48..50 => self.remove_node(),
            50..62 => self.advance(),
            62..66 => self.kill(),
            66..69 => self.pause(),
            69..76 => self.restart(),
            76..79 => self.partition(),
            79..81 => self.cut_link(),
            81 if self.generator.bool() => self.delay_link(),
            81 => self.delay_all_links(),
            82..86 => self.heal_links(),
            86..90 => self.set_lag(),
            90..92 => self.fail_over(),
            92..94 => self.fail_over_losing(),
            94..98 => self.migrate_or_go_on(),
            _ => self.make_stale(),
        }
    }

    /// Notes which writes may be lost as a node has joined their shard and not got its data: if the primary fails
    /// before it has, Redis lets one be elected that was a replica of another primary.
    fn note_new_members(&mut self) {
        for node in self.members() {
            let facts = self.facts(node, 0);
            if self.shards[node] != facts.shard && !facts.is_linked {
                self.history.endanger("joined without data", |write| write.shard == facts.shard);
            }
            self.shards[node] = facts.shard;
        }
    }

    fn any_node(&mut self) -> usize {
        let place = self.generator.usize(..self.members.len());
        *self.members.iter().nth(place).expect("there are that many")
    }

    fn members(&self) -> Vec<usize> {
        self.members.iter().copied().collect()
    }

    fn call(&mut self, node: usize, line: &str) -> Result<Reply, CallError> {
        match &mut self.clients[node] {
            Some(client) => client.call(line.split(' ')),
            None => Err(CallError::Closed),
        }
    }

    /// Appends a number to a list, as a client for clusters does it: it begins at any node, and follows redirects.
    fn write(&mut self) {
        let (key, mut node) = (self.generator.usize(..KEYS.len()), self.any_node());
        let number = self.history.next_number();
        let line = format!("RPUSH {} {number}", KEYS[key].0);
        let mut is_asking = false;
        for _ in 0..MAX_REDIRECTS {
            if is_asking {
                _ = self.call(node, "ASKING");
            }
            let reply = self.call(node, &line);
            let shown = self.without_ports(&format!("{reply:?}"));
            self.tell(&format!("{line} at {node}: {shown}"));
            let Err(CallError::Refused(error)) = reply else {
                if reply.is_ok() {
                    let slot = KEYS[key].1;
                    let risk = if is_asking { self.copy_risk_at(node, slot) } else { self.risk_at(node, slot) };
                    // The target of a move that was given up takes a write, too, and never owns the slot.
                    let is_half_moved = match self.open_move.as_ref().filter(|open| open.key == key) {
                        Some(open) => open.is_disturbed,
                        None => is_asking && self.given_up.contains(&key),
                    };
                    let risk = risk.or(is_half_moved.then_some("half moved")).or(self.unheard_risk(key, node));
                    let shard = self.facts(node, KEYS[key].1).shard;
                    self.tell(&format!("  may be lost: {risk:?}"));
                    self.history.acknowledge(key, shard, risk);
                }
                return;
            };
            is_asking = error.starts_with("ASK ");
            let target = error.strip_prefix("MOVED ").or(error.strip_prefix("ASK "));
            let Some(next) = target.and_then(|to| self.node_at(to)) else { return };
            node = next;
        }
    }

    /// The node at the address of a redirect.
    fn node_at(&self, redirect: &str) -> Option<usize> {
        let port: u16 = redirect.rsplit_once(':')?.1.parse().ok()?;
        self.members().into_iter().find(|node| self.nodes[*node].addr().port() == port)
    }

    fn facts(&self, node: usize, slot: u16) -> Facts {
        self.nodes[node].with_engine(|engine| {
            let view = engine.peers.cluster.as_ref().expect("it is a node");
            let replication = engine.peers.replication.as_ref();
            let myself = view.myself();
            Facts {
                id: myself.id,
                shard: myself.shard,
                epoch: myself.config_epoch,
                owns_slot: view.owns(slot),
                primary: myself.primary,
                is_linked: replication.is_some_and(|own| own.link.as_ref().is_some_and(|link| link.is_up())),
                offset: replication.map_or(0, |own| own.history.offset),
            }
        })
    }

    fn is_up(&self, node: usize) -> bool {
        self.clients[node].is_some()
    }

    /// Why a write to a slot that a node has just taken may be lost, if it may: another node has a better claim to
    /// the slot, or not all nodes of the shard have the write.
    fn risk_at(&self, node: usize, slot: u16) -> Option<Reason> {
        let own = self.facts(node, slot);
        // Of two nodes with one epoch, which nobody has voted for, either may win, be a link slow or not.
        let has_claim = |facts: Facts| facts.owns_slot && facts.epoch >= own.epoch;
        let is_claimed = self.members.iter().any(|other| *other != node && has_claim(self.facts(*other, slot)));
        if is_claimed { Some("stale") } else { self.copy_risk_at(node, slot) }
    }

    /// Why a write that a node has just taken may be lost, if it may: not all nodes of its shard have it.
    fn copy_risk_at(&self, node: usize, slot: u16) -> Option<Reason> {
        let own = self.facts(node, slot);
        for other in self.members().into_iter().filter(|other| *other != node) {
            let facts = self.facts(other, slot);
            if facts.shard != own.shard {
                continue;
            }
            if !self.is_up(other) {
                return Some("down");
            }
            let has_it = facts.primary == Some(own.id) && facts.is_linked && facts.offset == own.offset;
            if !has_it {
                return Some("late");
            }
        }
        None
    }

    fn advance(&mut self) {
        let most = [50, 2_000, 20_000, 60_000][self.generator.usize(..4)];
        let ms = self.generator.u64(1..=most);
        self.tell(&format!("{ms} ms pass"));
        self.server.advance(Duration::from_millis(ms));
    }

    fn kill(&mut self) {
        let node = self.any_node();
        let outcome = self.server.kill_node(node);
        self.tell(&format!("kill {node}: {outcome:?}"));
        if outcome.is_ok() {
            self.clients[node] = None;
            self.paused.remove(&node);
        }
    }

    /// Pauses a node, whose client does not wait for it.
    fn pause(&mut self) {
        let node = self.any_node();
        let outcome = self.server.pause_node(node);
        self.tell(&format!("pause {node}: {outcome:?}"));
        if outcome.is_ok() {
            self.clients[node] = None;
            self.paused.insert(node);
        }
    }

    fn resume(&mut self, node: usize) {
        let outcome = self.server.resume_node(node);
        self.tell(&format!("resume {node}: {outcome:?}"));
        self.paused.remove(&node);
        self.clients[node] = self.nodes[node].client().ok();
    }

    fn restart(&mut self) {
        let Some(node) = self.members().into_iter().find(|node| !self.is_up(*node)) else { return };
        if self.paused.contains(&node) {
            return self.resume(node);
        }
        let is_empty = self.generator.u8(..8) == 0;
        if is_empty {
            let shard = self.facts(node, 0).shard;
            self.history.endanger("emptied", |write| write.shard == shard);
        }
        self.restart_node(node, is_empty);
    }

    fn restart_node(&mut self, node: usize, is_empty: bool) {
        let outcome = if is_empty { self.server.restart_node_empty(node) } else { self.server.restart_node(node) };
        self.tell(&format!("restart {node}, empty: {is_empty}: {outcome:?}"));
        self.clients[node] = self.nodes[node].client().ok();
    }

    fn partition(&mut self) {
        let group: Vec<usize> = self.members().into_iter().filter(|_| self.generator.bool()).collect();
        let outcome = self.server.partition(&[&group]);
        self.tell(&format!("partition {group:?}: {outcome:?}"));
    }

    fn cut_link(&mut self) {
        let (one, other) = (self.any_node(), self.any_node());
        let outcome = self.server.cut_link(one, other);
        self.tell(&format!("cut {one} {other}: {outcome:?}"));
    }

    fn delay_link(&mut self) {
        let (one, other) = (self.any_node(), self.any_node());
        let delay = LONGEST_DELAY.mul_f64(self.generator.f64());
        let outcome = self.server.delay_link(one, other, delay);
        self.has_slow_links |= outcome.is_ok();
        self.tell(&format!("delay {one} {other} {delay:?}: {outcome:?}"));
    }

    /// Gives each link a delay of its own, as in a real network: most are short, and a few are long.
    fn delay_all_links(&mut self) {
        let members = self.members();
        for (place, one) in members.iter().enumerate() {
            for other in &members[place + 1..] {
                let delay = LONGEST_JITTER.mul_f64(self.generator.f64().powi(3));
                let outcome = self.server.delay_link(*one, *other, delay);
                self.has_slow_links |= outcome.is_ok();
                self.tell(&format!("delay {one} {other} {delay:?}: {outcome:?}"));
            }
        }
    }

    fn heal_links(&mut self) {
        self.tell("heal");
        self.has_slow_links = false;
        self.server.heal();
    }

    fn set_lag(&mut self) {
        let (node, lag) = (self.any_node(), self.generator.u64(..3));
        let outcome = if self.generator.bool() {
            self.server.set_lag(node, Duration::from_secs(lag))
        } else {
            self.server.set_lag_in_writes(node, lag as usize)
        };
        self.tell(&format!("lag {node} {lag}: {outcome:?}"));
    }

    fn make_stale(&mut self) {
        let node = self.any_node();
        let outcome =
            if self.generator.bool() { self.server.make_view_stale(node) } else { self.server.refresh_view(node) };
        self.tell(&format!("stale or fresh view of {node}: {outcome:?}"));
    }

    /// Ends all failures, and lets time pass until the nodes must agree.
    fn heal(&mut self) {
        self.tell("the end: heal all");
        self.server.heal();
        for node in self.members() {
            if self.paused.contains(&node) {
                self.resume(node);
            } else if !self.is_up(node) {
                self.restart_node(node, false);
            }
            _ = self.server.refresh_view(node);
        }
        self.end_lags();
        for _ in 0..12 {
            self.server.advance(Duration::from_secs(10));
        }
        if let Some(open) = self.open_move.take() {
            self.migrate(open.key, open.to);
        }
        // A node that was down when a move was given up has not heard of that.
        (0..KEYS.len()).for_each(|key| self.close_slot(key));
        self.end_lags();
        self.server.advance(Duration::from_secs(10));
    }

    /// Ends the lag of all replicas: each keeps its own while it is a primary for a time.
    fn end_lags(&self) {
        self.members.iter().for_each(|node| _ = self.server.set_lag(*node, Duration::ZERO));
    }

    /// Notes that each later epoch is one that was voted for, again: all nodes have heard of all epochs, and no two
    /// primaries have the same one.
    fn note_settled_epochs(&mut self) {
        if !self.has_unvoted_epochs || self.has_slow_links || self.members.iter().any(|node| !self.is_up(*node)) {
            return;
        }
        let seen_by = |node: &usize| {
            self.nodes[*node].with_engine(|engine| {
                let view = engine.peers.cluster.as_ref().expect("it is a node");
                let owners = view.nodes().iter().filter(|known| view.owns_slots(known.id));
                let epochs: BTreeMap<NodeId, u64> = owners.map(|known| (known.id, known.config_epoch)).collect();
                (view.current_epoch, epochs)
            })
        };
        let views: BTreeSet<(u64, BTreeMap<NodeId, u64>)> = self.members.iter().map(seen_by).collect();
        let Some((_, epochs)) = views.first().filter(|_| views.len() == 1) else { return };
        let different: BTreeSet<&u64> = epochs.values().collect();
        self.has_unvoted_epochs = different.len() < epochs.len();
        self.settled += usize::from(!self.has_unvoted_epochs);
    }

    /// No two nodes own a slot by one epoch, in the same view or in different ones.
    fn check_epochs(&self) -> Result<(), String> {
        for (_, slot) in KEYS {
            let mut owners = BTreeMap::new();
            for node in self.members() {
                let claim = self.nodes[node].with_engine(|engine| {
                    let view = engine.peers.cluster.as_ref().expect("it is a node");
                    view.owner(slot).map(|owner| (owner.config_epoch, owner.id))
                });
                let Some((epoch, owner)) = claim else { continue };
                let (other, by) = *owners.entry(epoch).or_insert((owner, node));
                if other != owner {
                    return Err(format!(
                        "{by} takes {other} for the owner of slot {slot} by epoch {epoch}, {node} {owner}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// All nodes serve, and have one view of the slots; replicas have the data of their primaries.
    fn check_agreement(&mut self) -> Result<(), String> {
        let first = self.slots_as_seen_by(0);
        for node in self.members() {
            let view = self.slots_as_seen_by(node);
            if view != first {
                return Err(format!("0 and {node} do not agree:\n{first}\n{view}"));
            }
        }
        for node in self.members() {
            let info = self.call(node, "CLUSTER INFO").map_err(|error| format!("{node}: {error}"))?;
            if !info.text().is_some_and(|text| text.contains("cluster_state:ok")) {
                return Err(format!("{node} does not serve:\n{}", info.text().unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// No node takes another one for failed or disconnected, or keeps a report of that.
    fn check_failures(&mut self) -> Result<(), String> {
        let ids: Vec<String> = self.members.iter().map(|node| self.facts(*node, 0).id.to_string()).collect();
        for node in self.members() {
            let lines = self.call(node, "CLUSTER NODES").map_err(|error| format!("{node}: {error}"))?;
            let lines = lines.text().unwrap_or_default().into_owned();
            let has_failure = |line: &str| line.split([' ', ',']).any(|word| FAILURE_WORDS.contains(&word));
            if lines.lines().any(has_failure) {
                return Err(format!("{node} sees a failure where there is none:\n{lines}"));
            }
            for id in &ids {
                let reports = self.call(node, &format!("CLUSTER COUNT-FAILURE-REPORTS {id}"));
                if reports != Ok(Reply::Integer(0)) {
                    return Err(format!("{node} has reports about {id}: {reports:?}"));
                }
            }
        }
        Ok(())
    }

    /// The owner of each range of slots, with its replicas, as a node sees it.
    fn slots_as_seen_by(&self, node: usize) -> String {
        self.nodes[node].with_engine(|engine| {
            let view = engine.peers.cluster.as_ref().expect("it is a node");
            let mut shown = String::new();
            for (slots, owner) in view.ranges() {
                let replicas = view.nodes().iter().filter(|other| other.primary == Some(owner.id));
                let mut replicas: Vec<String> = replicas.map(|replica| replica.id.to_string()).collect();
                replicas.sort();
                let _ = writeln!(shown, "{slots:?} {} {} {replicas:?}", owner.id, owner.config_epoch);
            }
            shown
        })
    }

    /// The numbers in the list of a key, and whether all replicas have the same.
    fn list(&mut self, key: usize) -> Result<Vec<u64>, String> {
        let (name, slot) = KEYS[key];
        let owner = self.members().into_iter().find(|node| self.facts(*node, slot).owns_slot);
        let owner = owner.ok_or_else(|| format!("nobody owns slot {slot}"))?;
        let id = self.facts(owner, slot).id;
        let list = self.list_at(owner, name)?;
        for node in self.members() {
            if self.facts(node, slot).primary != Some(id) {
                continue;
            }
            _ = self.call(node, "READONLY");
            let copy = self.list_at(node, name)?;
            if copy != list {
                return Err(format!("{owner} has {list:?} in {name}, and its replica {node} {copy:?}"));
            }
        }
        Ok(list)
    }

    fn list_at(&mut self, node: usize, name: &str) -> Result<Vec<u64>, String> {
        let reply =
            self.call(node, &format!("LRANGE {name} 0 -1")).map_err(|error| format!("{name} at {node}: {error}"))?;
        let items = reply.items().unwrap_or_default();
        Ok(items.iter().filter_map(|item| item.text()?.parse().ok()).collect())
    }
}
