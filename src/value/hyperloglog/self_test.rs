//! PFSELFTEST: checks that sketches work as they should on this machine.

use super::{Form, REGISTERS, Registers, Sketch, SketchMut, count_of, dense};

/// The number of random elements that are added, and the number of estimates that are checked on the way.
const ELEMENTS: u64 = 100_000;
/// The mean error of an estimate, and the greatest error allowed, as a multiple of it.
const MEAN_ERROR: f64 = 0.0081;
const FARTHEST: f64 = 6.0;

/// Tests registers, both forms and estimates with random numbers.
///
/// # Errors
/// A description of what is wrong.
pub fn self_test(mut random: impl FnMut() -> u64) -> Result<(), &'static str> {
    test_registers(&mut random)?;
    let (mut sparse, mut dense) = (Vec::new(), Vec::new());
    let mut sketches = [SketchMut::fresh(&mut sparse, usize::MAX), SketchMut::fresh(&mut dense, 0)];
    sketches[1].make_dense().map_err(|_| "a fresh sketch is corrupted")?;
    let mut checkpoint = 1;
    for count in 1..=ELEMENTS {
        let element = random().to_le_bytes();
        for sketch in &mut sketches {
            let added = sketch.add_all([element.as_slice()].into_iter());
            added.map_err(|_| "a sketch is corrupted after an element was added")?;
        }
        // Long runs of bytes make a sparse one slow; few elements show as well that both forms agree.
        if count == checkpoint {
            compare(&sketches, count)?;
            checkpoint *= 10;
        }
        if count == 1000 {
            sketches[0].make_dense().map_err(|_| "a sparse sketch is corrupted")?;
        }
    }
    Ok(())
}

fn test_registers(random: &mut impl FnMut() -> u64) -> Result<(), &'static str> {
    let values: Registers = std::array::from_fn(|_| (random() % 64) as u8);
    let mut bytes = vec![0; dense::BYTES];
    for (index, value) in values.iter().enumerate() {
        dense::raise(&mut bytes, index, *value);
    }
    let mut read = [0; REGISTERS];
    dense::merge_into(&bytes, &mut read);
    if read == values { Ok(()) } else { Err("a register does not hold what was put into it") }
}

/// Compares sketches of both forms that have seen the same `elements`.
fn compare(sketches: &[SketchMut<'_>], elements: u64) -> Result<(), &'static str> {
    let mut registers = [[0; REGISTERS]; 2];
    for (sketch, registers) in sketches.iter().zip(&mut registers) {
        let sketch = Sketch::of(sketch.bytes).ok_or("a sketch has lost its head")?;
        sketch.merge_into(registers).map_err(|_| "a sketch is corrupted")?;
        if sketch.count() != Ok(count_of(registers)) {
            return Err("a sketch and its registers are counted differently");
        }
    }
    if registers[0] != registers[1] {
        return Err("the sparse and the dense form differ");
    }
    let error = count_of(&registers[0]).abs_diff(elements) as f64;
    let is_near = error <= (FARTHEST * MEAN_ERROR * elements as f64).ceil();
    let is_form = sketches[1].form() == Form::Dense;
    if is_near && is_form { Ok(()) } else { Err("an estimate is too far off") }
}
