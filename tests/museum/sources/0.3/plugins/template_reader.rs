//! A reader of lines of numbers: the features of a sample, then its class, from 0, with spaces between them. Empty
//! lines and those that begin with # are left out. The binding and the host derive positions, exact resuming and
//! shuffling. SPDX-License-Identifier: MIT
use tenon_plugin::*;

const MOST_CLASSES: f64 = 1048576.0;

struct Lines {
    width: usize,
    classes: i64,
    features: Vec<f32>, // [samples, width]
    labels: Vec<i64>,   // [samples]
}

/// The numbers of a line, of which there must be `expected`, or at least 2 if that is None.
fn numbers(line: &str, place: &str, expected: Option<usize>) -> Done<Vec<f64>> {
    let mut result = Vec::new();
    for word in line.split_ascii_whitespace() {
        match word.parse::<f64>() {
            Ok(number) => push(&mut result, number)?,
            Err(_) => return fail(BAD_DATA, place, format!("expected numbers, got {:?}", word)),
        }
    }
    if result.len() < 2 || expected.map_or(false, |expected| result.len() != expected) {
        let wanted = expected.map_or(String::from("at least 2"), |expected| expected.to_string());
        return fail(BAD_DATA, place, format!("expected {} numbers, got {}", wanted, result.len()));
    }
    let label = result[result.len() - 1];
    if !(0.0..MOST_CLASSES).contains(&label) || label.fract() != 0.0 {
        return fail(BAD_DATA, place, "expected a class, a whole number from 0, at the end");
    }
    Ok(result)
}

impl Reader for Lines {
    fn open(open: &Opening) -> Done<Lines> {
        let path = open.path(open.given().text("file").unwrap_or_default());
        let name = path.display().to_string();
        let text = read_text(&path)?;
        let mut made = Lines { width: 0, classes: 0, features: Vec::new(), labels: Vec::new() };
        let mut count = 0;
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let expected = (count > 0).then(|| made.width + 1);
            let mut values = numbers(line, &format!("{}, line {}", name, i + 1), expected)?;
            let label = values.pop().unwrap_or_default() as i64;
            made.width = values.len();
            made.classes = made.classes.max(label + 1);
            if open.has(count) {
                extend(&mut made.features, values.iter().map(|value| *value as f32))?;
                push(&mut made.labels, label)?;
            }
            count += 1;
        }
        if count == 0 {
            return fail(BAD_DATA, name, "has no samples");
        }
        Ok(made)
    }

    fn slots(&self) -> Vec<Slot> {
        vec![
            Slot { name: "feature", dtype: F32, shape: vec![self.width as i64], index_limit: -1 },
            Slot { name: "label", dtype: I64, shape: vec![], index_limit: self.classes },
        ]
    }

    fn samples(&self) -> usize {
        self.labels.len()
    }

    fn read(&mut self, index: usize, to: &mut Sample) -> Done {
        to.dense(0).copy_from_slice(&self.features[index * self.width..(index + 1) * self.width]);
        to.dense(1).copy_from_slice(&self.labels[index..=index]);
        Ok(())
    }
}

reader! {
    READER: Lines, "example.my_plugin", "lines of numbers with spaces between them: features, then a class from 0",
    attributes [Attribute::string(text!("file"), text!("the file to read")).required()]
}
plugin! {
    "example.my_plugin", "0.1.0", "Reads lines of numbers", "MIT",
    layers [], kernels [], updaters [], readers [READER]
}
