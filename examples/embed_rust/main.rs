//! An application in Rust that holds Tenon through tenon/tenon.h alone: learns whether a point lies inside a circle,
//! from points that it makes itself; saves the model, loads it, and predicts.
//!   embed_rust MODEL
//! MODEL is the file to write. SPDX-License-Identifier: Apache-2.0
mod raw;
mod tenon;

use tenon::{Feed, Host, Result, Value};

const BATCH: usize = 64;
const STEPS: usize = 1000;

/// Points of the square from -1 to 1, and whether each lies inside the circle of radius 0.8.
struct Points {
    state: u32, // of a small generator
    point: [f32; 2 * BATCH],
    inside: [i64; BATCH],
}
impl Points {
    fn new(seed: u32) -> Points {
        Points { state: seed, point: [0.0; 2 * BATCH], inside: [0; BATCH] }
    }
    fn draw(&mut self) {
        for number in &mut self.point {
            self.state = self.state.wrapping_mul(1103515245).wrapping_add(12345) & 0x7fff_ffff;
            *number = (self.state >> 8) as f32 / 0x3f_ffff as f32 - 1.0;
        }
        for (inside, point) in self.inside.iter_mut().zip(self.point.chunks(2)) {
            *inside = i64::from(point[0] * point[0] + point[1] * point[1] < 0.64);
        }
    }
}

// docs: train
fn train(host: &Host, file: &str) -> Result<()> {
    let point = host.floats("point", &[2])?;
    let inside = host.class("inside", 2)?;
    let hidden = host.layer("fc", "hidden", &[&point], &[("size", Value::Int(16)), ("act", Value::Text("tanh"))])?;
    let score = host.layer("fc", "score", &[&hidden], &[("size", Value::Int(2))])?;
    let cost = host.layer("cross_entropy", "cost", &[&score, &inside], &[("from_logits", Value::Bool(true))])?;
    let probability = host.layer("softmax", "probability", &[&score], &[])?;
    let parameters = host.parameters(&[&cost, &probability], 1)?;
    let mut machine = host.machine(&parameters, &[&cost], BATCH as i64, true)?;
    let mut updater = host.updater("adam", &[("learning_rate", Value::Float(0.01))])?;
    let mut points = Points::new(1);
    for step in 1..=STEPS {
        points.draw();
        let samples = BATCH as i64;
        machine.forward(&[
            Feed::Floats("point", &[samples, 2], &points.point),
            Feed::Integers("inside", &[samples], &points.inside),
        ])?;
        machine.backward()?;
        updater.update(&mut machine)?;
        if step % 200 == 0 {
            println!("step {}  cost {:.4}", step, machine.cost()?);
        }
    }
    parameters.save(&[&cost, &probability], file)
}
// docs: end

fn predict(host: &Host, file: &str) -> Result<()> {
    let (parameters, outputs) = host.load(file)?; // cost, probability
    let mut machine = host.machine(&parameters, &[&outputs[1]], BATCH as i64, false)?;
    let mut points = Points::new(2);
    points.draw();
    machine.forward(&[Feed::Floats("point", &[BATCH as i64, 2], &points.point)])?;
    let probability = machine.output(&outputs[1])?; // [BATCH, 2]; the machine is borrowed with it
    let right = probability.chunks(2).zip(points.inside).filter(|(p, inside)| (p[1] > p[0]) == (*inside == 1)).count();
    println!("{} of {} new points were told right", right, BATCH);
    Ok(())
}

// docs: wrong
/// A wrong call is an Error, which changed nothing: here an attribute, and a backward of a machine not for training.
fn show_errors(host: &Host) -> Result<()> {
    let point = host.floats("point", &[2])?;
    if let Err(error) = host.layer("fc", "score", &[&point], &[("size", Value::Int(-1))]) {
        println!("refused: {} [code {}, subject {:?}]", error, error.code, error.subject);
    }
    let score = host.layer("fc", "score", &[&point], &[("size", Value::Int(1))])?;
    let mut machine = host.machine(&host.parameters(&[&score], 1)?, &[&score], 1, false)?;
    if let Err(error) = machine.backward() {
        println!("refused: {} [code {}]", error, error.code);
    }
    Ok(())
}
// docs: end

fn run(file: &str) -> Result<()> {
    println!("Tenon {}", tenon::version());
    let host = Host::new()?;
    train(&host, file)?;
    predict(&host, file)?;
    show_errors(&host)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 2 {
        eprintln!("usage: embed_rust MODEL");
        std::process::exit(64);
    }
    if let Err(error) = run(&arguments[1]) {
        eprintln!("embed_rust: {} (code {})", error, error.code);
        std::process::exit(1);
    }
}
