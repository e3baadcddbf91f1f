module sui::transfer;

public fun transfer<T: key>(obj: T, recipient: address) {
    transfer_impl(obj, recipient)
}

public fun public_transfer<T: key + store>(obj: T, recipient: address) {
    transfer_impl(obj, recipient)
}

public fun share_object<T: key>(obj: T) {
    share_object_impl(obj)
}

public fun public_share_object<T: key + store>(obj: T) {
    share_object_impl(obj)
}

public fun freeze_object<T: key>(obj: T) {
    freeze_object_impl(obj)
}

public fun public_freeze_object<T: key + store>(obj: T) {
    freeze_object_impl(obj)
}

public(package) native fun share_object_impl<T: key>(obj: T);

public(package) native fun freeze_object_impl<T: key>(obj: T);

public(package) native fun transfer_impl<T: key>(obj: T, recipient: address);
