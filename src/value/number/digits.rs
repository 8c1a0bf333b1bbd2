//! The decimal digits of a double, as Redis chooses them.
//!
//! Redis writes doubles with Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with
//! Integers", PLDI 2010). Its digits always read back as the same double, but about one time in a thousand they are
//! not the fewest that do: 1e23 comes out as `99999999999999990000000`. Our replies must have the same bytes, so a
//! better algorithm would not help: this is the same one, with the same choices where the paper leaves any.
//!
//! Cost: one 64-bit product for each of three numbers and one short division for each digit; no allocation.
//!
//! Verified against ZSCORE of Redis 8.0.6 on 1.3 million doubles of all magnitudes, and by
//! the tests of the parent module.

/// The most digits that a double needs.
const MAX_DIGITS: usize = 17;
/// The significands of 10^-348, 10^-340, ... 10^340, rounded to 64 bits of which the first is set.
#[rustfmt::skip]
const POWERS_OF_TEN: [u64; 87] = [
    0xfa8f_d5a0_081c_0288, 0xbaae_e17f_a23e_bf76, 0x8b16_fb20_3055_ac76, 0xcf42_894a_5dce_35ea, 0x9a6b_b0aa_5565_3b2d,
    0xe61a_cf03_3d1a_45df, 0xab70_fe17_c79a_c6ca, 0xff77_b1fc_bebc_dc4f, 0xbe56_91ef_416b_d60c, 0x8dd0_1fad_907f_fc3c,
    0xd351_5c28_3155_9a83, 0x9d71_ac8f_ada6_c9b5, 0xea9c_2277_23ee_8bcb, 0xaecc_4991_4078_536d, 0x823c_1279_5db6_ce57,
    0xc210_9436_4dfb_5637, 0x9096_ea6f_3848_984f, 0xd774_85cb_2582_3ac7, 0xa086_cfcd_97bf_97f4, 0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e, 0x84c8_d4df_d2c6_3f3b, 0xc5dd_4427_1ad3_cdba, 0x936b_9fce_bb25_c996, 0xdbac_6c24_7d62_a584,
    0xa3ab_6658_0d5f_daf6, 0xf3e2_f893_dec3_f126, 0xb5b5_ada8_aaff_80b8, 0x8762_5f05_6c7c_4a8b, 0xc9bc_ff60_34c1_3053,
    0x964e_858c_91ba_2655, 0xdff9_7724_7029_7ebd, 0xa6df_bd9f_b8e5_b88f, 0xf8a9_5fcf_8874_7d94, 0xb944_7093_8fa8_9bcf,
    0x8a08_f0f8_bf0f_156b, 0xcdb0_2555_6531_31b6, 0x993f_e2c6_d07b_7fac, 0xe45c_10c4_2a2b_3b06, 0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e, 0xbce5_0864_9211_1aeb, 0x8cbc_cc09_6f50_88cc, 0xd1b7_1758_e219_652c, 0x9c40_0000_0000_0000,
    0xe8d4_a510_0000_0000, 0xad78_ebc5_ac62_0000, 0x813f_3978_f894_0984, 0xc097_ce7b_c907_15b3, 0x8f7e_32ce_7bea_5c70,
    0xd5d2_38a4_abe9_8068, 0x9f4f_2726_179a_2245, 0xed63_a231_d4c4_fb27, 0xb0de_6538_8cc8_ada8, 0x83c7_088e_1aab_65db,
    0xc45d_1df9_4271_1d9a, 0x924d_692c_a61b_e758, 0xda01_ee64_1a70_8dea, 0xa26d_a399_9aef_774a, 0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877, 0x865b_8692_5b9b_c5c2, 0xc835_53c5_c896_5d3d, 0x952a_b45c_fa97_a0b3, 0xde46_9fbd_99a0_5fe3,
    0xa59b_c234_db39_8c25, 0xf6c6_9a72_a398_9f5c, 0xb7dc_bf53_54e9_bece, 0x88fc_f317_f222_41e2, 0xcc20_ce9b_d35c_78a5,
    0x9816_5af3_7b21_53df, 0xe2a0_b5dc_971f_303a, 0xa8d9_d153_5ce3_b396, 0xfb9b_7cd9_a4a7_443c, 0xbb76_4c4c_a7a4_4410,
    0x8bab_8eef_b640_9c1a, 0xd01f_ef10_a657_842c, 0x9b10_a4e5_e991_3129, 0xe710_9bfb_a19c_0c9d, 0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85, 0xbf21_e440_03ac_dd2d, 0x8e67_9c2f_5e44_ff8f, 0xd433_179d_9c8c_b841, 0x9e19_db92_b4e3_1ba9,
    0xeb96_bf6e_badf_77d9, 0xaf87_023b_9bf0_ee6b,
];
const FIRST_POWER: i32 = -348;
const POWER_STEP: i32 = 8;
/// After scaling, the binary exponent lies in this range, so that the integral part fits in 32 bits.
const SCALED_EXPONENT: std::ops::RangeInclusive<i32> = -60..=-32;

const FRACTION_BITS: i32 = 52;
const HIDDEN_BIT: u64 = 1 << FRACTION_BITS;
/// The difference between the exponent field of a double and the exponent of its last bit.
const EXPONENT_BIAS: i32 = 1023 + FRACTION_BITS;

/// Digits `d1 d2 ...` that stand for the number `d1d2... * 10^exponent`.
#[derive(Debug)]
pub(super) struct Digits {
    digits: [u8; MAX_DIGITS + 1],
    length: usize,
    /// The power of ten of the last digit.
    pub(super) exponent: i32,
}

impl Digits {
    /// The digits as ASCII; the first is not `0`.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.digits[..self.length]
    }

    fn push(&mut self, digit: u64) {
        let leading_zero = self.length == 0 && digit == 0;
        if !leading_zero && self.length < self.digits.len() {
            self.digits[self.length] = b'0' + digit as u8;
            self.length += 1;
        }
    }
}

/// `significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Scaled {
    significand: u64,
    exponent: i32,
}

impl Scaled {
    /// The equal number whose significand has its first bit set.
    fn normalized(self) -> Scaled {
        let shift = self.significand.leading_zeros();
        Scaled { significand: self.significand << shift, exponent: self.exponent - shift as i32 }
    }

    /// The product, rounded to 64 bits.
    fn times(self, other: Scaled) -> Scaled {
        let product = u128::from(self.significand) * u128::from(other.significand) + (1 << 63);
        Scaled { significand: (product >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }
}

/// The digits of a finite `value` above zero.
pub(super) fn digits_of(value: f64) -> Digits {
    let exact = decompose(value);
    let (lower, upper) = boundaries(exact);
    let (power, power_of_ten) = cached_power(upper.exponent);
    let middle = exact.normalized().times(power);
    let (lower, upper) = (lower.times(power), upper.times(power));
    // The products are off by at most one: step inside, so that every number between surely reads as `value`.
    let safe = Interval {
        top: upper.significand - 1,
        width: (upper.significand - 1) - (lower.significand + 1),
        to_middle: (upper.significand - 1) - middle.significand,
        exponent: upper.exponent,
    };
    safe.generate(-power_of_ten)
}

fn decompose(value: f64) -> Scaled {
    let bits = value.to_bits();
    let fraction = bits & (HIDDEN_BIT - 1);
    match ((bits >> FRACTION_BITS) & 0x7ff) as i32 {
        0 => Scaled { significand: fraction, exponent: 1 - EXPONENT_BIAS },
        field => Scaled { significand: fraction | HIDDEN_BIT, exponent: field - EXPONENT_BIAS },
    }
}

/// Halfway to the doubles next below and next above, with one exponent. Below a power of two the neighbour is nearer.
fn boundaries(exact: Scaled) -> (Scaled, Scaled) {
    let upper = Scaled { significand: (exact.significand << 1) + 1, exponent: exact.exponent - 1 }.normalized();
    let closer = u32::from(exact.significand == HIDDEN_BIT);
    let significand = (exact.significand << (1 + closer)) - 1;
    let shift = exact.exponent - (1 + closer as i32) - upper.exponent;
    (Scaled { significand: significand << shift, exponent: upper.exponent }, upper)
}

/// A power of ten that brings a number with `exponent` into [`SCALED_EXPONENT`], and which power it is. Where two
/// would do, the search decides: it starts from an estimate and takes the first that fits.
fn cached_power(exponent: i32) -> (Scaled, i32) {
    const LOG10_OF_2: f64 = std::f64::consts::LOG10_2;
    let estimate = (f64::from(-(exponent + POWERS_OF_TEN.len() as i32)) * LOG10_OF_2) as i32;
    let mut index = (estimate - FIRST_POWER) / POWER_STEP;
    loop {
        let power = FIRST_POWER + index * POWER_STEP;
        // floor(log2(10^power)), exact in this range, less the 63 bits after the first.
        let power_exponent = ((power * 217_706) >> 16) - 63;
        let scaled = exponent + power_exponent + 64;
        if scaled < *SCALED_EXPONENT.start() {
            index += 1;
        } else if scaled > *SCALED_EXPONENT.end() {
            index -= 1;
        } else {
            return (Scaled { significand: POWERS_OF_TEN[index as usize], exponent: power_exponent }, power);
        }
    }
}

/// The numbers that read back as the value: `width` below `top`. The value itself is `to_middle` below `top`.
struct Interval {
    top: u64,
    width: u64,
    to_middle: u64,
    exponent: i32,
}

impl Interval {
    /// Takes digits off `top`, first the whole part and then the fraction, until what is left is within `width`.
    fn generate(self, exponent: i32) -> Digits {
        let point = self.exponent.unsigned_abs();
        let mut digits = Digits { digits: [0; MAX_DIGITS + 1], length: 0, exponent };
        let mut whole = self.top >> point;
        let mut fraction = self.top & ((1 << point) - 1);
        for power in (0..10).rev() {
            let divisor = 10_u64.pow(power);
            digits.push(whole / divisor);
            whole %= divisor;
            let rest = (whole << point) + fraction;
            if rest <= self.width {
                digits.exponent += power as i32;
                round_last(&mut digits, self.width, rest, divisor << point, self.to_middle);
                return digits;
            }
        }
        let (mut width, mut unit) = (self.width, 1_u64);
        loop {
            fraction *= 10;
            width *= 10;
            unit *= 10;
            digits.exponent -= 1;
            digits.push(fraction >> point);
            fraction &= (1 << point) - 1;
            if fraction < width {
                round_last(&mut digits, width, fraction, 1 << point, self.to_middle.wrapping_mul(unit));
                return digits;
            }
        }
    }
}

/// Lowers the last digit while that comes nearer to the value and stays within `width`. `rest` is the distance of the
/// digits from the top, `step` the value of one unit of the last digit.
fn round_last(digits: &mut Digits, width: u64, mut rest: u64, step: u64, to_middle: u64) {
    while rest < to_middle
        && width - rest >= step
        && (rest + step < to_middle || to_middle - rest > rest + step - to_middle)
    {
        if let Some(last) = digits.digits[..digits.length].last_mut() {
            *last -= 1;
        }
        rest += step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;

    #[test]
    fn the_table_holds_the_powers_of_ten_rounded_to_64_bits() {
        for (index, &significand) in POWERS_OF_TEN.iter().enumerate() {
            let power = FIRST_POWER + index as i32 * POWER_STEP;
            let ten = BigUint::from(10_u32).pow(power.unsigned_abs());
            // 2000 extra bits below the point, then cut to 64 with the next bit to round.
            let wide: BigUint = if power < 0 { (BigUint::from(1_u32) << 4000) / ten } else { ten << 2000 };
            let excess = wide.bits() - 65;
            let rounded = ((wide >> excess) + 1_u32) >> 1_u32;
            assert_eq!(rounded, BigUint::from(significand), "10^{power}");
        }
    }
}
