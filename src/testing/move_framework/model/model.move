/// What a run of a transaction adds to the framework: values that no published function makes.
#[test_only]
extend module sui::object {
    public fun model_uid(bytes: address): UID { new_uid_from_hash(bytes) }
    public fun model_make_ID(bytes: address): ID { ID { bytes } }
}

/// The verifier accepts an object with the id of a function of this name.
#[test_only]
extend module sui::test_scenario {
    public fun new_object(bytes: address): UID { object::model_uid(bytes) }
}

#[test_only]
extend module sui::tx_context {
    public fun model_context(sender: address, tx_hash: vector<u8>, epoch: u64, epoch_timestamp_ms: u64): TxContext {
        replace(sender, tx_hash, epoch, epoch_timestamp_ms, 0, 1000, 1000, 0, vector[]);
        TxContext { sender, tx_hash, epoch, epoch_timestamp_ms, ids_created: 0 }
    }
}
