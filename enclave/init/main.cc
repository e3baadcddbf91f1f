// The single program of an enclave besides the server: as the first process, it boots the enclave.
#include <stdio.h>
#include <unistd.h>

#include "init.h"

int main() {
  // Anywhere else it would mount over the machine's folders, and reboot it in the end.
  if (getpid() == 1) enclave::run_init();
  fputs("init: runs only as the first process of an enclave\n", stderr);
  return 2;
}
