//! SORT and SORT_RO: sort the elements of a list, set or sorted set, by themselves or by other keys.
//!
//! A [`Pattern`] names a key, or a field of a hash, for each element. The key is looked up like any other: if it is
//! missing or of another type, the weight is 0 and the reply is null.
//!
//! Elements are copied once, all into one text, since looking up a key may delete that key or another if it has
//! expired. Elements of equal weight are ordered by their own bytes or, where bytes are not compared, by their original
//! order.
//!
//! Texts are compared as C compares them, up to a NUL, unless the result is stored. Numbers are parsed as leniently as
//! the bounds of a range of scores.
//!
//! Source: the replies of Redis 8.0.6.

use crate::engine::exec::{cluster_compatibility, operations};
use crate::engine::{
    AclError, Args, Arity, Begin, Changed, ClusterError, Command, Ctx, Engine, Error, Event, Family, Find, Flags,
    KeyFlags, KeySpec, Lookup, Missing,
};
use crate::resp::{Reply, Span};
use crate::value::hash_slot::{hash_slot, hash_slot_of_pattern};
use crate::value::list::List;
use crate::value::number::{parse_f64_bound, until_nul};
use crate::value::{Item, View, Zset};
use std::cmp::Ordering;
use std::ops::Range;

pub(super) const SORT: Command = Command {
    name: "SORT",
    syntax: "key [BY by-pattern:pattern] [LIMIT offset count] [GET get-pattern:pattern [GET get-pattern:pattern ...]] \
             order:[ASC|DESC] [sorting:ALPHA] [STORE destination]",
    flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::DANGEROUS).and(Flags::COLLECTIONS),
    keys: &[SORTED, NAMED_BY_PATTERNS, STORED],
    since: "1.0.0",
    about: "Sorts the elements of a list, a set or a sorted set, and returns or stores them.",
    run: |cx, args| sort(cx, args, true),
    ..SORT_RO
};

pub(super) const SORT_RO: Command = Command {
    name: "SORT_RO",
    syntax: "key [BY by-pattern:pattern] [LIMIT offset count] [GET get-pattern:pattern [GET get-pattern:pattern ...]] \
             order:[ASC|DESC] [sorting:ALPHA]",
    family: Family::Generic,
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.and(Flags::DANGEROUS).and(Flags::COLLECTIONS),
    keys: &[SORTED, NAMED_BY_PATTERNS],
    since: "7.0.0",
    cost: "O(N+M*log(M)) where N is the number of elements and M of those answered, O(N) if they are not sorted.",
    about: "Sorts the elements of a list, a set or a sorted set, and returns them.",
    run: |cx, args| sort(cx, args, false),
    ..Command::ROW
};

const SORTED: KeySpec = KeySpec::one(KeyFlags::RO.and(KeyFlags::ACCESS));

const NAMED_BY_PATTERNS: KeySpec = KeySpec {
    begin: Begin::Unknown,
    notes: "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of \
            the key we sort",
    ..SORTED
};

const STORED: KeySpec = KeySpec {
    begin: Begin::Option("STORE", &[("LIMIT", 2), ("GET", 1), ("BY", 1)]),
    find: Find::Range { last: 0, step: 1, limit: 0 },
    access: KeyFlags::OW.and(KeyFlags::UPDATE),
    notes: "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the \
            argument array",
};

fn sort(cx: &mut Ctx<'_>, mut args: Args<'_>, may_store: bool) -> Result<(), Error> {
    let key = args.key()?;
    let may_read_all = operations::may_read_all_keys(cx, &args);
    let mut slots = PatternSlots::of(cx.engine(), key);
    let options = Options::parse(&mut args, may_store, may_read_all, &mut slots);
    operations::count_incompatible(cx, slots.others);
    let options = options?;
    let elements = match options.order {
        Order::Kept => kept(cx, key, &options)?,
        Order::Numbers => by_number(cx, key, &options)?,
        Order::Texts => by_text(cx, key, &options)?,
    };
    match options.target {
        Some(target) => store(cx, target, &elements, &options.get),
        None => reply_with_elements(cx, &elements, &options.get),
    }
    Ok(())
}

/// The comparison of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// No comparison: the elements keep their order.
    Kept,
    Numbers,
    Texts,
}

struct Options<'a> {
    order: Order,
    descending: bool,
    /// The pattern of an element's weight; without it the element is its own weight.
    by: Option<Pattern<'a>>,
    offset: i64,
    count: i64,
    get: Vec<Pattern<'a>>,
    target: Option<&'a [u8]>,
}

/// The slots of keys named by patterns: a node of a cluster refuses all but the slot of the sorted key.
struct PatternSlots {
    /// The slot of the sorted key, if slots matter here.
    own: Option<u16>,
    is_node: bool,
    /// The number of patterns so far whose keys may be in other slots.
    others: usize,
}

impl PatternSlots {
    fn of(engine: &Engine, key: &[u8]) -> PatternSlots {
        let is_node = engine.peers.cluster.is_some();
        let do_matter = is_node || cluster_compatibility::is_sampling(engine);
        PatternSlots { own: do_matter.then(|| hash_slot(key)), is_node, others: 0 }
    }

    /// Refuses or counts a pattern whose keys may be in another slot. As in Redis, BY may be a word without `*`, which
    /// names no key, and GET may not.
    fn check(&mut self, option: &'static str, word: &[u8], pattern: Pattern<'_>) -> Result<(), ClusterError> {
        let is_checked = match pattern {
            Pattern::Element => false,
            Pattern::Nothing => option == "GET",
            Pattern::Named { .. } => true,
        };
        let is_other = |own| is_checked && hash_slot_of_pattern(word) != Some(own);
        if self.own.is_some_and(is_other) {
            self.others += 1;
            if self.is_node {
                return Err(ClusterError::SortPattern(option));
            }
        }
        Ok(())
    }
}

impl<'a> Options<'a> {
    /// `may_read_all`: whether the client may read all keys, as keys named by patterns are not checked one by one.
    fn parse(
        args: &mut Args<'a>,
        may_store: bool,
        may_read_all: bool,
        slots: &mut PatternSlots,
    ) -> Result<Options<'a>, Error> {
        let (mut is_kept, mut is_alpha) = (false, false);
        let mut options = Options {
            order: Order::Numbers,
            descending: false,
            by: None,
            offset: 0,
            count: -1,
            get: Vec::new(),
            target: None,
        };
        while !args.is_empty() {
            if args.take("ASC") {
                options.descending = false;
            } else if args.take("DESC") {
                options.descending = true;
            } else if args.take("ALPHA") {
                is_alpha = true;
            } else if args.take_with("LIMIT", 2) {
                (options.offset, options.count) = (args.integer()?, args.integer()?);
            } else if may_store && args.take_with("STORE", 1) {
                options.target = Some(args.key()?);
            } else if args.take_with("BY", 1) {
                let word = args.word()?;
                let pattern = Pattern::of(word);
                slots.check("BY", word, pattern)?;
                let is_named = matches!(pattern, Pattern::Named { .. });
                if is_named && !may_read_all {
                    return Err(AclError::SortOption("BY").into());
                }
                is_kept |= !is_named;
                options.by = Some(pattern);
            } else if args.take_with("GET", 1) {
                let word = args.word()?;
                options.get.push(Pattern::of(word));
                slots.check("GET", word, Pattern::of(word))?;
                if !may_read_all {
                    return Err(AclError::SortOption("GET").into());
                }
            } else {
                return Err(Error::Syntax);
            }
        }
        options.order = match (is_kept, is_alpha) {
            (true, _) => Order::Kept,
            (false, true) => Order::Texts,
            (false, false) => Order::Numbers,
        };
        Ok(options)
    }

    /// The range of positions that LIMIT selects of `len` elements.
    fn window(&self, len: usize) -> Range<usize> {
        let start = usize::try_from(self.offset.max(0)).map_or(len, |start| start.min(len));
        match usize::try_from(self.count) {
            Ok(count) => start..start.saturating_add(count).min(len),
            Err(_) => start..len,
        }
    }

    /// The selected elements of all, in order of their weights.
    fn wanted<W>(
        &self,
        elements: Elements,
        mut weighed: Vec<Weighed<W>>,
        compare: impl Fn(&Elements, &Weighed<W>, &Weighed<W>) -> Ordering,
    ) -> Elements {
        weighed.sort_by(|a, b| if self.descending { compare(&elements, b, a) } else { compare(&elements, a, b) });
        let window = self.window(weighed.len());
        Elements { spans: weighed[window].iter().map(|weighed| weighed.element).collect(), ..elements }
    }
}

/// Copies of elements, in one text.
#[derive(Default)]
struct Elements {
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl Elements {
    fn add(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len();
        append(&mut self.text);
        self.spans.push(Span { start, end: self.text.len() });
    }

    fn at(&self, span: Span) -> &[u8] {
        &self.text[span.start..span.end]
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.spans.iter().map(|span| self.at(*span))
    }
}

impl<'a> FromIterator<Item<'a>> for Elements {
    fn from_iter<I: IntoIterator<Item = Item<'a>>>(items: I) -> Elements {
        let mut elements = Elements::default();
        items.into_iter().for_each(|item| elements.add(|text| item.append_to(text)));
        elements
    }
}

/// An element and its weight.
struct Weighed<W> {
    weight: W,
    element: Span,
}

/// A pattern of `BY` or `GET`.
#[derive(Clone, Copy, Debug)]
enum Pattern<'a> {
    /// `#`: the element itself.
    Element,
    /// A pattern without a `*`: it names no key.
    Nothing,
    /// A key, the element between two parts; optionally a field of the hash in that key.
    Named { before: &'a [u8], behind: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    /// The pattern of a word `before*behind->field`. Its special characters are searched only before the first NUL.
    fn of(word: &'a [u8]) -> Pattern<'a> {
        let visible = until_nul(word);
        if visible == b"#" {
            return Pattern::Element;
        }
        let Some(star) = visible.iter().position(|&byte| byte == b'*') else { return Pattern::Nothing };
        let (before, rest) = (&word[..star], &word[star + 1..]);
        let arrow = visible[star + 1..].windows(2).position(|pair| pair == b"->");
        match arrow.filter(|arrow| star + 1 + arrow + 2 < visible.len()) {
            Some(arrow) => Pattern::Named { before, behind: &rest[..arrow], field: Some(&rest[arrow + 2..]) },
            None => Pattern::Named { before, behind: rest, field: None },
        }
    }

    /// Calls `act` with the value that this pattern names for an element.
    fn look_up<R>(&self, cx: &mut Ctx<'_>, element: &[u8], act: impl FnOnce(Option<&[u8]>, &mut Reply<'_>) -> R) -> R {
        let Pattern::Named { before, behind, field } = *self else {
            return act(matches!(self, Pattern::Element).then_some(element), cx.reply());
        };
        let key = [before, element, behind].concat();
        let due_ms = cx.due_ms();
        if let Some(field) = field {
            operations::expire_fields(cx, &key, |removal, hash, due_ms| removal.one(hash, field, due_ms));
        }
        let (view, reply) = cx.view(&key);
        match (view, field) {
            (Some(View::Text(text)), None) => act(Some(text.as_bytes(&mut itoa::Buffer::new())), reply),
            (Some(View::Hash(hash)), Some(field)) => match hash.at(due_ms).get(field) {
                Some(value) => act(Some(value.as_bytes(&mut Vec::new())), reply),
                None => act(None, reply),
            },
            _ => act(None, reply),
        }
    }
}

/// The selected elements in their stored order: for a descending list or sorted set from the end, for a set always from
/// the start. They are ordered by their bytes if they are stored or if a script calls, so that the result does not
/// depend on the set's encoding.
fn kept(cx: &mut Ctx<'_>, key: &[u8], options: &Options<'_>) -> Result<Elements, Error> {
    let is_set = matches!(cx.lookup(key, Lookup::NO_TRACE).map(|key| key.view()), Some(View::Set(_)));
    if is_set && (options.target.is_some() || cx.is_in_script()) {
        return by_text(cx, key, &Options { by: None, get: Vec::new(), ..*options });
    }
    let is_reversed = options.descending && !is_set;
    elements(cx, key, is_reversed, |len| {
        let window = options.window(len);
        if is_reversed { len - window.end..len - window.start } else { window }
    })
}

fn by_number(cx: &mut Ctx<'_>, key: &[u8], options: &Options<'_>) -> Result<Elements, Error> {
    let elements = elements(cx, key, false, |len| 0..len)?;
    let mut weighed = Vec::with_capacity(elements.spans.len());
    let mut are_numbers = true;
    for &span in &elements.spans {
        let weight = weight_of(cx, options, elements.at(span), |weight| weight.map_or(Some(0.0), parse_f64_bound));
        are_numbers &= weight.is_some();
        weighed.push(Weighed { weight: weight.unwrap_or_default(), element: span });
    }
    if !are_numbers {
        return Err(Error::WeightNotADouble);
    }
    Ok(options.wanted(elements, weighed, |elements, a, b| {
        let by_weight = a.weight.partial_cmp(&b.weight).unwrap_or(Ordering::Equal);
        by_weight.then_with(|| elements.at(a.element).cmp(elements.at(b.element)))
    }))
}

fn by_text(cx: &mut Ctx<'_>, key: &[u8], options: &Options<'_>) -> Result<Elements, Error> {
    let copy = |text: &[u8]| if options.target.is_some() { text.to_vec() } else { until_nul(text).to_vec() };
    let elements = elements(cx, key, false, |len| 0..len)?;
    let mut weighed = Vec::with_capacity(elements.spans.len());
    for &span in &elements.spans {
        let weight = weight_of(cx, options, elements.at(span), |weight| weight.map(copy));
        weighed.push(Weighed { weight, element: span });
    }
    Ok(options.wanted(elements, weighed, |_, a, b| a.weight.cmp(&b.weight)))
}

/// The result of `read` for an element's weight.
fn weight_of<W>(cx: &mut Ctx<'_>, options: &Options<'_>, element: &[u8], read: impl FnOnce(Option<&[u8]>) -> W) -> W {
    match &options.by {
        Some(pattern) => pattern.look_up(cx, element, |weight, _| read(weight)),
        None => read(Some(element)),
    }
}

/// The elements in a range of positions, which `part` computes from their number; for a list or sorted set in their
/// order or reversed.
fn elements(
    cx: &mut Ctx<'_>,
    key: &[u8],
    is_reversed: bool,
    part: impl Fn(usize) -> Range<usize>,
) -> Result<Elements, Error> {
    match cx.view(key).0 {
        None => Ok(Elements::default()),
        Some(View::List(list)) => Ok(copied(list.range(part(list.len())), is_reversed)),
        Some(View::Set(set)) => {
            let positions = part(set.len());
            Ok(set.iter().skip(positions.start).take(positions.len()).collect())
        }
        Some(View::Zset(zset)) => {
            let members = zset.range(part(zset.len())).map(|entry| Item::Text(entry.member, &[]));
            let elements = copied(members, is_reversed);
            outgrow(cx, key)?;
            Ok(elements)
        }
        Some(View::Text(_) | View::Hash(_) | View::Stream(_) | View::VectorSet(_)) => Err(Error::WrongType),
    }
}

fn copied<'a>(items: impl DoubleEndedIterator<Item = Item<'a>>, is_reversed: bool) -> Elements {
    if is_reversed { items.rev().collect() } else { items.collect() }
}

/// Redis converts a sorted set that it sorts to a skiplist, which a client can see.
fn outgrow(cx: &mut Ctx<'_>, key: &[u8]) -> Result<(), Error> {
    cx.update(key, Missing::Skip, SORT_STORED, |zset: &mut Zset, _| {
        zset.outgrow();
        Ok(Changed::by(0, ()))
    })?;
    Ok(())
}

fn reply_with_elements(cx: &mut Ctx<'_>, elements: &Elements, get: &[Pattern<'_>]) {
    cx.reply().array(elements.spans.len() * get.len().max(1));
    for element in elements.iter() {
        if get.is_empty() {
            cx.reply().bulk(element);
        }
        for pattern in get {
            pattern.look_up(cx, element, |value, reply| reply.bulk_or_null(value));
        }
    }
}

const SORT_STORED: Event = Event::list("sortstore");

fn store(cx: &mut Ctx<'_>, target: &[u8], elements: &Elements, get: &[Pattern<'_>]) {
    let limits = cx.settings().list_nodes;
    let mut found = Elements::default();
    for (element, pattern) in elements.iter().flat_map(|element| get.iter().map(move |pattern| (element, pattern))) {
        pattern.look_up(cx, element, |value, _| found.add(|text| text.extend_from_slice(value.unwrap_or_default())));
    }
    let stored = if get.is_empty() { elements } else { &found };
    let list = List::from_elements(stored.iter(), &limits);
    cx.store(target, list, SORT_STORED);
    cx.reply().count(stored.spans.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(word: &str) -> Option<(&str, &str, Option<&str>)> {
        let text = |bytes| std::str::from_utf8(bytes).expect("these patterns are text");
        match Pattern::of(word.as_bytes()) {
            Pattern::Named { before, behind, field } => Some((text(before), text(behind), field.map(text))),
            Pattern::Element | Pattern::Nothing => None,
        }
    }

    #[test]
    fn a_sort_pattern_has_a_key_and_an_optional_field() {
        assert_eq!(parts("w_*"), Some(("w_", "", None)));
        assert_eq!(parts("a*b*c"), Some(("a", "b*c", None)));
        assert_eq!(parts("h_*->f"), Some(("h_", "", Some("f"))));
        assert_eq!(parts("h_*:x->f->g"), Some(("h_", ":x", Some("f->g"))));
        assert_eq!(parts("h_*->"), Some(("h_", "->", None)));
        assert_eq!(parts("->*"), Some(("->", "", None)));
        assert_eq!(parts("a*\0->f"), Some(("a", "\0->f", None)));
        assert_eq!(parts("a\0*"), None);
        assert!(matches!(Pattern::of(b"#\0x"), Pattern::Element));
        assert!(matches!(Pattern::of(b"#x"), Pattern::Nothing));
    }

    #[test]
    fn a_limit_selects_only_existing_elements() {
        let window = |offset, count, len| {
            let mut slots = PatternSlots { own: None, is_node: false, others: 0 };
            let options = Options::parse(&mut none(), false, true, &mut slots).expect("no options");
            Options { offset, count, ..options }.window(len)
        };
        assert_eq!(window(0, -1, 5), 0..5);
        assert_eq!(window(-3, 2, 5), 0..2);
        assert_eq!(window(1, -5, 5), 1..5);
        assert_eq!(window(3, i64::MAX, 5), 3..5);
        assert_eq!(window(i64::MAX, i64::MAX, 5), 5..5);
        assert_eq!(window(i64::MIN, 0, 5), 0..0);
    }

    fn none() -> Args<'static> {
        Args::new(crate::resp::Request::new(&[], &[]), 0)
    }
}
