//! The text format 0.0.4 of Prometheus, in which metrics are read.
//!
//! A family of metrics is its description and its samples, one line each. The later format OpenMetrics is not offered:
//! it forbids names that dashboards for Redis use. The format is written here and not by a library, because a library
//! counts metrics of its own, and these are read from INFO.

use std::fmt::{Display, Write};

use crate::engine::state::CoarseHistogram;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricType {
    /// It goes up and down.
    Gauge,
    /// It only grows, until the server starts anew.
    Counter,
    /// Quantiles of durations, with their sum and number.
    Summary,
    /// The numbers of durations up to some bounds, with their sum and number.
    Histogram,
}

impl MetricType {
    fn name(self) -> &'static str {
        match self {
            MetricType::Gauge => "gauge",
            MetricType::Counter => "counter",
            MetricType::Summary => "summary",
            MetricType::Histogram => "histogram",
        }
    }
}

/// A text in that format.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    /// The description of the family that has begun, until its first sample: a family without samples has no lines.
    heading: String,
}

/// The labels of a sample: names and values.
pub(super) type Labels<'l> = &'l [(&'static str, &'l str)];

impl Exposition {
    /// Begins a family, whose samples are to follow at once.
    pub(super) fn family(&mut self, name: impl Display, kind: MetricType, help: impl Display) {
        self.heading.clear();
        // Writing into a string cannot fail.
        let _ = writeln!(self.heading, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
    }

    /// Writes a sample of the family that has begun.
    pub(super) fn sample(&mut self, name: impl Display, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(&self.heading);
        self.heading.clear();
        let _ = write!(self.text, "{name}");
        for (place, (label, content)) in labels.iter().enumerate() {
            self.text.push_str(if place == 0 { "{" } else { "," });
            self.text.push_str(label);
            self.text.push_str("=\"");
            content.chars().for_each(|character| push_escaped(&mut self.text, character));
            self.text.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    /// Writes a family of one sample without labels.
    pub(super) fn metric(&mut self, name: impl Display, kind: MetricType, help: impl Display, value: impl Display) {
        self.family(&name, kind, help);
        self.sample(name, &[], value);
    }

    /// Writes a histogram of the family that has begun: its buckets, each with its bound and how much does not exceed
    /// it, then the sum of all and their number.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        buckets: impl Iterator<Item = (f64, u64)>,
        (sum, count): (impl Display, u64),
    ) {
        let bounds = buckets.map(|(bound, count)| (bound.to_string(), count));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels = [labels, &[("le", &*bound)]].concat();
            self.sample(format_args!("{name}_bucket"), &labels, count);
        }
        self.sample(format_args!("{name}_sum"), labels, sum);
        self.sample(format_args!("{name}_count"), labels, count);
    }

    /// Writes a histogram of durations, in seconds, of the family that has begun.
    pub(super) fn durations(&mut self, name: &str, labels: Labels<'_>, durations: &CoarseHistogram) {
        let buckets = durations.buckets().map(|(bound_us, count)| (bound_us as f64 / 1e6, count));
        self.histogram(name, labels, buckets, (durations.total_us as f64 / 1e6, durations.count()));
    }

    /// The whole text.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

fn push_escaped(text: &mut String, character: char) {
    match character {
        '\\' => text.push_str("\\\\"),
        '"' => text.push_str("\\\""),
        '\n' => text.push_str("\\n"),
        _ => text.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_its_description_and_its_samples_if_there_are_any() {
        let mut exposition = Exposition::default();
        exposition.metric("up", MetricType::Gauge, "It runs.", 1);
        exposition.family("calls_total", MetricType::Counter, "Calls.");
        exposition.sample("calls_total", &[("cmd", "get"), ("of", "a")], 0.5);
        exposition.family("unseen", MetricType::Gauge, "Nothing has it.");
        exposition.metric("ready", MetricType::Gauge, "It answers.", 0);
        let expected = "# HELP up It runs.\n# TYPE up gauge\nup 1\n\
            # HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{cmd=\"get\",of=\"a\"} 0.5\n\
            # HELP ready It answers.\n# TYPE ready gauge\nready 0\n";
        assert_eq!(exposition.into_text(), expected);
    }

    #[test]
    fn quotes_backslashes_and_line_ends_of_labels_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.sample("m", &[("l", "a\"b\\c\nd")], 1);
        assert_eq!(exposition.into_text(), "m{l=\"a\\\"b\\\\c\\nd\"} 1\n");
    }
}
