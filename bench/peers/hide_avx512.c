/*
 * hide_avx512.c: a library that a peer preloads, so that it takes a processor with AVX-512 for one with AVX2.
 *
 * The kernel lets the instruction CPUID of the process fail (arch_prctl(2), ARCH_SET_CPUID), and the handler of the
 * signal answers it without the bits of AVX-512 and AMX. A program that handles SIGSEGV itself, as Node does, gets all
 * other faults. Intel's processors can do it since Ivy Bridge; on others the process ends with a message.
 */
#if defined(__x86_64__) && defined(__linux__)
#include <asm/prctl.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* Bits of leaf 7 (Intel, "Software Developer's Manual", volume 2, CPUID). */
enum {
    HIDDEN_EBX = 1 << 16 | 1 << 17 | 1 << 21 | 1 << 26 | 1 << 27 | 1 << 28 | 1 << 30, /* and bit 31, VL */
    HIDDEN_ECX = 1 << 1 | 1 << 6 | 1 << 11 | 1 << 12 | 1 << 14,
    HIDDEN_EDX = 1 << 2 | 1 << 3 | 1 << 8 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 25,
    HIDDEN_EAX_1 = 1 << 5 | 1 << 21, /* subleaf 1 */
};

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
static sigaction_function *next_sigaction;
static struct sigaction of_program; /* what the program wants for SIGSEGV */

static void answer_cpuid(greg_t *registers)
{
    const uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX];
    uint32_t a = leaf, b = 0, c = subleaf, d = 0;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && subleaf == 0) {
        b &= ~((uint32_t)HIDDEN_EBX | UINT32_C(1) << 31);
        c &= ~(uint32_t)HIDDEN_ECX;
        d &= ~(uint32_t)HIDDEN_EDX;
    } else if (leaf == 7 && subleaf == 1) {
        a &= ~(uint32_t)HIDDEN_EAX_1;
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    if (info->si_code == SI_KERNEL && at[0] == 0x0f && at[1] == 0xa2)
        answer_cpuid(registers);
    else if ((of_program.sa_flags & SA_SIGINFO) != 0)
        of_program.sa_sigaction(signal_number, info, context);
    else
        signal(SIGSEGV, of_program.sa_handler == SIG_IGN ? SIG_DFL : of_program.sa_handler);
}

static void find_next(void)
{
    if (next_sigaction == NULL)
        *(void **)&next_sigaction = dlsym(RTLD_NEXT, "sigaction");
}

int sigaction(int signal_number, const struct sigaction *action, struct sigaction *old)
{
    find_next();
    if (signal_number != SIGSEGV)
        return next_sigaction(signal_number, action, old);
    if (old != NULL)
        *old = of_program;
    if (action != NULL)
        of_program = *action;
    return 0;
}

static __attribute__((constructor)) void hide(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    action.sa_sigaction = on_fault;
    find_next();
    next_sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0)
        return;
    fputs("hide_avx512: this processor does not let CPUID fail\n", stderr);
    _exit(1);
}
#endif
