// The only native code of the server: opens the NSM's device node and passes raw messages through it. TypeScript
// encodes and decodes the messages; here they are bounded byte arrays.
//
//   new Device(path: string)                     opens; throws a system error
//   device.transact(request: Uint8Array)         one ioctl on a libuv worker thread: Promise<Uint8Array>
//   device.close()                               releases the descriptor; calls in flight keep it until they return
//
// A system error is an Error with `code` (name of the error number, or the number as a string), `errno` (negative, as
// in Node's errors) and `syscall`. Invalid arguments throw a TypeError.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

// A call may return while its environment is ending (process.exit(), a terminated worker thread) and JavaScript can no
// longer run. Its result is then dropped; without this definition, the process would abort.
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#include <napi.h>

namespace {

// As in the kernel's linux/nsm.h, which the headers of older distributions lack.
struct NsmIovec {
  std::uint64_t addr;
  std::uint64_t len;
};
struct NsmRaw {
  NsmIovec request;
  NsmIovec response;
};
constexpr unsigned long kIoctlRaw = _IOWR(0x0A, 0x0, NsmRaw);
constexpr std::size_t kRequestMax = 0x1000;
constexpr std::size_t kResponseMax = 0x3000;
static_assert(sizeof(NsmRaw) == 32 && kIoctlRaw == 0xC0200A00);
static_assert(sizeof(void*) == sizeof(std::uint64_t));

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int fd() const { return fd_; }

 private:
  const int fd_;
};

Napi::Error SystemError(Napi::Env env, const char* syscall, int number) {
  const char* name = ::strerrorname_np(number);
  const std::string code = name != nullptr ? name : std::to_string(number);
  Napi::Error error = Napi::Error::New(env, std::string(syscall) + ": " + code);
  error.Set("code", Napi::String::New(env, code));
  error.Set("errno", Napi::Number::New(env, -number));
  error.Set("syscall", Napi::String::New(env, syscall));
  return error;
}

// One request and its answer. The base class deletes it once the promise is settled, or when the environment ends
// first.
class Call final : public Napi::AsyncWorker {
 public:
  Call(Napi::Env env, std::shared_ptr<const Descriptor> descriptor, Napi::Uint8Array request)
      : Napi::AsyncWorker(env, "nsm"),
        descriptor_(std::move(descriptor)),
        deferred_(Napi::Promise::Deferred::New(env)),
        request_length_(request.ElementLength()) {
    std::copy_n(request.Data(), request_length_, request_.begin());
  }

  Napi::Promise Promise() const { return deferred_.Promise(); }

 protected:
  // Runs on a worker thread: the driver may block for up to two minutes. An interrupted call must not be repeated,
  // since extending a register twice differs from extending it once.
  void Execute() override {
    NsmRaw raw{
        {reinterpret_cast<std::uintptr_t>(request_.data()), request_length_},
        // The largest buffer that the driver supports, because it silently truncates a longer answer.
        {reinterpret_cast<std::uintptr_t>(response_.data()), response_.size()},
    };
    if (::ioctl(descriptor_->fd(), kIoctlRaw, &raw) < 0) {
      error_ = errno;
    }
    response_length_ = raw.response.len;
  }

  void OnOK() override {
    if (error_ != 0) {
      deferred_.Reject(SystemError(Env(), "ioctl", error_).Value());
    } else if (response_length_ > response_.size()) {
      Napi::Error error = Napi::Error::New(Env(), "the driver reported more bytes than the buffer holds");
      error.Set("code", Napi::String::New(Env(), "ERR_NSM_LENGTH"));
      deferred_.Reject(error.Value());
    } else {
      Napi::Uint8Array answer = Napi::Uint8Array::New(Env(), response_length_);
      std::copy_n(response_.begin(), response_length_, answer.Data());
      deferred_.Resolve(answer);
    }
  }

 private:
  const std::shared_ptr<const Descriptor> descriptor_;
  const Napi::Promise::Deferred deferred_;
  const std::size_t request_length_;
  std::uint64_t response_length_ = 0;
  int error_ = 0;
  std::array<std::uint8_t, kRequestMax> request_{};
  std::array<std::uint8_t, kResponseMax> response_{};
};

class Device final : public Napi::ObjectWrap<Device> {
 public:
  static Napi::Function Define(Napi::Env env) {
    return DefineClass(env, "Device",
                       {InstanceMethod<&Device::Transact>("transact"), InstanceMethod<&Device::Close>("close")});
  }

  explicit Device(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Device>(info) {
    if (info.Length() != 1 || !info[0].IsString()) {
      throw Napi::TypeError::New(info.Env(), "path must be a string");
    }
    const std::string path = info[0].As<Napi::String>();
    if (path.empty() || path.find('\0') != std::string::npos) {
      throw Napi::TypeError::New(info.Env(), "path must not be empty or hold a zero byte");
    }
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
      throw SystemError(info.Env(), "open", errno);
    }
    descriptor_ = std::make_shared<const Descriptor>(fd);
  }

 private:
  Napi::Value Transact(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (info.Length() != 1 || !info[0].IsTypedArray() ||
        info[0].As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
      throw Napi::TypeError::New(env, "request must be a Uint8Array");
    }
    const auto request = info[0].As<Napi::Uint8Array>();
    if (request.ElementLength() == 0 || request.ElementLength() > kRequestMax) {
      throw Napi::TypeError::New(env, "request must be 1 to 4096 bytes");
    }
    if (!descriptor_) {
      throw Napi::Error::New(env, "the device is closed");
    }
    auto call = std::make_unique<Call>(env, descriptor_, request);
    const Napi::Promise promise = call->Promise();
    call->Queue();
    call.release();
    return promise;
  }

  void Close(const Napi::CallbackInfo&) { descriptor_.reset(); }

  std::shared_ptr<const Descriptor> descriptor_;
};

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("Device", Device::Define(env));
  return exports;
}

}  // namespace

NODE_API_MODULE(nsm, Init)
