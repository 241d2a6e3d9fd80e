//! Prints a source in C that compiles only if the binding's structs and numbers are those of the C headers: the size of
//! each struct and the offset of each member. The structs have no padding, so equal sizes leave no member out.
//! SPDX-License-Identifier: Apache-2.0
fn main() {
    println!("#include <assert.h>\n#include <stddef.h>\n#include <tenon/plugin.h>");
    for (name, bytes, members) in tenon_plugin::layouts() {
        println!("static_assert(sizeof({name}) == {bytes}, \"{name}\");");
        for (member, offset) in members {
            let member = match member.trim_start_matches("r#") {
                "this" => "self",
                other => other,
            };
            println!("static_assert(offsetof({name}, {member}) == {offset}, \"{name}.{member}\");");
        }
    }
    for (name, value) in tenon_plugin::numbers() {
        println!("static_assert((long long){name} == {value}LL, \"{name}\");");
    }
    println!("int main(void) {{ return 0; }}");
}
