// The device side of vhost-user for a virtio vsock: it answers QEMU's frontend, maps the guest's memory, and serves
// the two queues. Written from the specifications of vhost-user and virtio 1.2.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

// struct virtio_vsock_hdr, little-endian as this machine is.
struct __attribute__((packed)) Header {
  uint64_t src_cid;
  uint64_t dst_cid;
  uint32_t src_port;
  uint32_t dst_port;
  uint32_t length;
  uint16_t type;
  uint16_t op;
  uint32_t flags;
  uint32_t buf_alloc;
  uint32_t fwd_cnt;
};

class Device {
 public:
  // `frontend` is the connected socket of the frontend. The device appends every packet of both directions, with its
  // header, to the file `record`, unless `record` is -1.
  Device(int frontend, uint64_t guest_cid, int record) : frontend_(frontend), guest_cid_(guest_cid), record_(record) {}

  int frontend() const { return frontend_; }
  // The eventfd of the queue that the guest sends on; -1 while it is not set.
  int transmit_kick() const { return queues_[1].kick; }
  int receive_kick() const { return queues_[0].kick; }

  // Answers one request of the frontend. Returns false if the frontend has closed the connection.
  bool serve_frontend();

  // Takes the next packet that the guest has sent. Returns false if there is none.
  bool take(Header& header, std::vector<char>& data);

  // Returns how many bytes fit behind the header into the guest's next buffer; -1 if there is no buffer.
  ssize_t room();

  // Puts a packet into the guest's next buffer. The caller checks by room() that the packet fits.
  void give(const Header& header, const char* data);

 private:
  struct Region {
    uint64_t guest;
    uint64_t size;
    uint64_t user;
    char* memory;
  };
  struct Queue {
    uint32_t size = 0;
    uint16_t next = 0;  // index in the available ring
    char* descriptors = nullptr;
    char* available = nullptr;
    char* used = nullptr;
    int kick = -1;
    int call = -1;
    bool enabled = false;
  };
  struct Piece {
    char* data;
    uint32_t size;
    bool writable;
  };

  void map_memory(const char* payload, const std::vector<int>& descriptors);
  char* at_user(uint64_t address) const;
  char* at_guest(uint64_t address, uint64_t size) const;
  bool peek(Queue& queue, uint16_t& head, std::vector<Piece>& pieces);
  void finish(Queue& queue, uint16_t head, uint32_t written);
  void keep(const std::vector<char>& packet) const;
  void reply(uint32_t request, const void* payload, uint32_t size);

  int frontend_;
  uint64_t guest_cid_;
  int record_;
  std::vector<Region> regions_;
  std::array<Queue, 2> queues_;
};
