// Written by sui-enclave gen: change app.ts instead, and run it again. sha256:b9399775323b789b1b945ad3129c1f056c1b1f69250973677cf57108756e10d9
/// The types that the application signs, with the same fields in the same order as in its app.ts.
module price::signed;

use std::string::String;

public use fun completion_model as Completion.model;
public use fun completion_prompt_hash as Completion.prompt_hash;
public use fun completion_answer_hash as Completion.answer_hash;
public use fun completion_finish_reason as Completion.finish_reason;

/// The intent code of `Completion`.
const COMPLETION_INTENT: u8 = 0;

public struct Completion has copy, drop {
    model: String,
    prompt_hash: vector<u8>,
    answer_hash: vector<u8>,
    finish_reason: String,
}

/// Returns the intent code, which `enclave::assert_signed` requires.
public fun intent_of_completion(): u8 {
    COMPLETION_INTENT
}

/// Creates a value. No signature has been verified yet.
public(package) fun new_completion(
    model: String,
    prompt_hash: vector<u8>,
    answer_hash: vector<u8>,
    finish_reason: String,
): Completion {
    Completion { model, prompt_hash, answer_hash, finish_reason }
}

public fun completion_model(self: &Completion): &String {
    &self.model
}

public fun completion_prompt_hash(self: &Completion): &vector<u8> {
    &self.prompt_hash
}

public fun completion_answer_hash(self: &Completion): &vector<u8> {
    &self.answer_hash
}

public fun completion_finish_reason(self: &Completion): &String {
    &self.finish_reason
}
