//! Writes a reply as one line of text, so that a fixture can list it.

use crate::reply::Reply;
use crate::words::quote;

/// How much of a reply is reproducible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// All of it.
    Exact,
    /// The elements, not their order.
    Unordered,
    /// Only what kind of reply it is, and its elements. Errors, nulls, and integers up to 0 (the codes) stay exact.
    Kind,
}

const LONGEST: usize = 60;

/// The line that represents `reply`.
pub(crate) fn line(reply: &Reply, sameness: Sameness) -> String {
    let (mark, elements): (&str, Vec<String>) = match reply {
        Reply::Array(items) => ("", items.iter().map(|item| inner(item, sameness)).collect()),
        Reply::Set(items) => ("~", items.iter().map(|item| inner(item, sameness)).collect()),
        Reply::Push(items) => (">", items.iter().map(|item| inner(item, sameness)).collect()),
        Reply::Map(pairs) => ("%", pairs.iter().map(|pair| inner_pair(pair, sameness)).collect()),
        Reply::Attribute(pairs) => ("|", pairs.iter().map(|pair| inner_pair(pair, sameness)).collect()),
        leaf => return one(leaf, sameness),
    };
    format!("{mark}[{}]", arranged(elements, sameness).join(" "))
}

fn inner_pair((key, value): &(Reply, Reply), sameness: Sameness) -> String {
    format!("{}: {}", inner(key, sameness), inner(value, sameness))
}

/// An element of a list: only the type of nested lists is written where nothing else is reproducible.
fn inner(reply: &Reply, sameness: Sameness) -> String {
    match (sameness, reply) {
        (Sameness::Kind, Reply::Array(_)) => "array".to_owned(),
        (Sameness::Kind, Reply::Set(_)) => "set".to_owned(),
        (Sameness::Kind, Reply::Map(_)) => "map".to_owned(),
        _ => line(reply, sameness),
    }
}

fn arranged(mut elements: Vec<String>, sameness: Sameness) -> Vec<String> {
    match sameness {
        Sameness::Exact => {}
        Sameness::Unordered => elements.sort(),
        Sameness::Kind => {
            elements.sort();
            elements.dedup();
            if !elements.is_empty() {
                elements.push("...".to_owned());
            }
        }
    }
    elements
}

fn one(reply: &Reply, sameness: Sameness) -> String {
    let is_kind = sameness == Sameness::Kind;
    match reply {
        Reply::Error(text) => marked("", text),
        Reply::BulkError(text) => marked("!", text),
        Reply::Null => "null".to_owned(),
        Reply::NullBulk => "null-bulk".to_owned(),
        Reply::NullArray => "null-array".to_owned(),
        Reply::Integer(number) if is_kind && !number.starts_with('-') && number != "0" => "integer".to_owned(),
        Reply::Simple(_) if is_kind => "simple".to_owned(),
        Reply::Bulk(_) if is_kind => "bulk".to_owned(),
        Reply::Verbatim(_) if is_kind => "verbatim".to_owned(),
        Reply::Double(_) if is_kind => "double".to_owned(),
        Reply::BigNumber(_) if is_kind => "big".to_owned(),
        Reply::Simple(text) => marked("+", text),
        Reply::Integer(number) => number.clone(),
        Reply::Double(number) => format!(",{number}"),
        Reply::BigNumber(number) => format!("({number}"),
        Reply::Boolean(value) => format!("#{value}"),
        Reply::Bulk(bytes) if bytes.len() > LONGEST => format!("({} bytes)", bytes.len()),
        Reply::Bulk(bytes) => quote(bytes),
        Reply::Verbatim(bytes) => format!("={}", quote(bytes)),
        Reply::Array(_) | Reply::Set(_) | Reply::Push(_) | Reply::Map(_) | Reply::Attribute(_) => line(reply, sameness),
    }
}

/// Text without quotes, cut where it is long.
fn marked(mark: &str, text: &[u8]) -> String {
    let kept = &text[..text.len().min(4 * LONGEST)];
    let letters: String = kept.iter().map(|byte| std::ascii::escape_default(*byte).to_string()).collect();
    let letters = letters.replace("\\'", "'").replace("\\\"", "\"");
    let rest = if kept.len() < text.len() { format!("... ({} bytes)", text.len()) } else { String::new() };
    format!("{mark}{letters}{rest}")
}
