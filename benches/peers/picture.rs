//! The ratios as a picture: two bars for each workload, and a line at the ratio 1, where both servers are equal.

use std::fmt::Write;

/// Our throughput and processor time, divided by those of the best peer.
pub struct Bars {
    pub name: String,
    pub throughput: f64,
    pub cpu: f64,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 240.0;
const RIGHT: f64 = 50.0;
const TOP: f64 = 92.0;
const ROW: f64 = 30.0;
const BAR: f64 = 10.0;

const THROUGHPUT: &str = "#1b7f79";
const CPU: &str = "#d9822b";

/// Draws an SVG. `caption` names the servers and the machine.
pub fn draw(title: &str, caption: &str, rows: &[Bars]) -> String {
    let largest = rows.iter().flat_map(|row| [row.throughput, row.cpu]).fold(1.5, f64::max);
    let scale = (WIDTH - LEFT - RIGHT) / largest;
    let bottom = TOP + ROW * rows.len() as f64;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        height = bottom + 40.0
    );
    text(&mut picture, 16.0, 28.0, "font-size=\"18\" font-weight=\"bold\"", title);
    text(&mut picture, 16.0, 48.0, "fill=\"#555\"", caption);
    legend(&mut picture, LEFT, THROUGHPUT, "throughput: more is better");
    legend(&mut picture, LEFT + 230.0, CPU, "processor time a command: less is better");
    let mut mark = 0.0;
    while mark <= largest {
        let (x, colour) = (LEFT + mark * scale, if mark == 1.0 { "#222" } else { "#ddd" });
        let _ =
            writeln!(picture, "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"{colour}\"/>");
        text(&mut picture, x, bottom + 18.0, "text-anchor=\"middle\" fill=\"#555\"", &format!("{mark:.1}"));
        mark += 0.5;
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + ROW * index as f64 + 5.0;
        text(&mut picture, LEFT - 10.0, y + 14.0, "text-anchor=\"end\"", &row.name);
        bar(&mut picture, y, row.throughput, scale, THROUGHPUT);
        bar(&mut picture, y + BAR, row.cpu, scale, CPU);
    }
    picture.push_str("</svg>\n");
    picture
}

fn bar(picture: &mut String, y: f64, value: f64, scale: f64, colour: &str) {
    let width = value * scale;
    let _ = writeln!(
        picture,
        "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
        BAR - 1.0
    );
    text(picture, LEFT + width + 4.0, y + 9.0, "font-size=\"10\"", &format!("{value:.2}"));
}

fn legend(picture: &mut String, x: f64, colour: &str, label: &str) {
    let y = TOP - 24.0;
    let _ = writeln!(picture, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
    text(picture, x + 18.0, y + 11.0, "", label);
}

fn text(picture: &mut String, x: f64, y: f64, attributes: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(picture, "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{text}</text>");
}
