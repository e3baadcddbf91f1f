module sui::transfer;

use sui::dynamic_field;

const TRANSFERRED: u8 = 1;
const SHARED: u8 = 2;
const FROZEN: u8 = 3;

public fun transfer<T: key>(obj: T, recipient: address) {
    dynamic_field::note<T>(TRANSFERRED, recipient, std::bcs::to_bytes(&obj));
    transfer_impl(obj, recipient)
}

public fun public_transfer<T: key + store>(obj: T, recipient: address) {
    dynamic_field::note<T>(TRANSFERRED, recipient, std::bcs::to_bytes(&obj));
    transfer_impl(obj, recipient)
}

public fun share_object<T: key>(obj: T) {
    dynamic_field::note<T>(SHARED, object::id(&obj).to_address(), std::bcs::to_bytes(&obj));
    share_object_impl(obj)
}

public fun public_share_object<T: key + store>(obj: T) {
    dynamic_field::note<T>(SHARED, object::id(&obj).to_address(), std::bcs::to_bytes(&obj));
    share_object_impl(obj)
}

public fun freeze_object<T: key>(obj: T) {
    dynamic_field::note<T>(FROZEN, object::id(&obj).to_address(), std::bcs::to_bytes(&obj));
    freeze_object_impl(obj)
}

public fun public_freeze_object<T: key + store>(obj: T) {
    dynamic_field::note<T>(FROZEN, object::id(&obj).to_address(), std::bcs::to_bytes(&obj));
    freeze_object_impl(obj)
}

public(package) native fun share_object_impl<T: key>(obj: T);

public(package) native fun freeze_object_impl<T: key>(obj: T);

public(package) native fun transfer_impl<T: key>(obj: T, recipient: address);
