// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use std::collections::HashMap;

fn main() {
    let mut map = HashMap::new();
    for i in 0..20000u64 {
        map.insert(i.wrapping_mul(7919), i);
    }
    let sum = map.iter().fold(0u64, |s, (k, v)| s.wrapping_mul(31).wrapping_add(k ^ v));
    println!("{sum}");
}
