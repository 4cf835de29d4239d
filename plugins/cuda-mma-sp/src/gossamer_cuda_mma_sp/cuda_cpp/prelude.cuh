// The operations of the language that CUDA C++ has not, or defines for fewer operands.

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gs {

// --- scalars ------------------------------------------------------------------------------------

// The bits of floats of 16 bits. The headers of CUDA have such types, but need those of its C++ library.
struct float16 { uint16_t bits; };
struct bfloat16 { uint16_t bits; };

// The type in which operations of T are computed, before they are rounded.
template <class T> struct wide { using type = T; };
template <> struct wide<float16> { using type = float; };
template <> struct wide<bfloat16> { using type = float; };
template <class T> using wide_t = typename wide<T>::type;

template <class T> constexpr bool is_half = !std::is_same<T, wide_t<T>>::value;
template <class T> constexpr bool is_integer = std::is_integral<T>::value;
template <class T> constexpr bool is_signed = std::is_signed<T>::value;

inline __device__ float widen(float16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
inline __device__ float widen(bfloat16 x) { return __uint_as_float(uint32_t(x.bits) << 16); }
template <class T> __device__ T widen(T x) { return x; }

// Rounds to nearest, ties to even.
inline __device__ bfloat16 to_bfloat16(float x) {
  uint32_t bits = __float_as_uint(x);
  if (x != x) return bfloat16{uint16_t(0x7fc0)};
  return bfloat16{static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
// The odd last bit of an inexact float keeps the second rounding from seeing a tie that is not one.
inline __device__ float to_odd(double x) {
  float y = __double2float_rz(x);
  return y == x || x != x ? y : __uint_as_float(__float_as_uint(y) | 1);
}

// Rounds a float or double to T, once.
template <class T, class F> __device__ T narrow(F x) {
  if constexpr (std::is_same<T, float16>::value) {
    float16 y;
    float once = sizeof(F) == 8 ? to_odd(x) : static_cast<float>(x);
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(once));
    return y;
  } else if constexpr (std::is_same<T, bfloat16>::value) {
    return to_bfloat16(sizeof(F) == 8 ? to_odd(x) : static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

// Integers wrap around: the low bits of unsigned results are those of signed ones.
#define GS_ARITHMETIC(NAME, OP)                                                    \
  template <class T> __device__ T NAME(T a, T b) {                                 \
    if constexpr (is_integer<T>)                                                   \
      return static_cast<T>(static_cast<uint64_t>(a) OP static_cast<uint64_t>(b)); \
    else                                                                           \
      return narrow<T>(widen(a) OP widen(b));                                      \
  }
GS_ARITHMETIC(add, +)
GS_ARITHMETIC(sub, -)
GS_ARITHMETIC(mul, *)

template <class T> __device__ T div(T a, T b) { return narrow<T>(widen(a) / widen(b)); }

// Division by 0 gives 0, and the least integer divided by -1 is itself.
template <class T> __device__ T floordiv(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>) {
    if (b == -1) return sub(T(0), a);
    T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  } else {
    return a / b;
  }
}
template <class T> __device__ T floormod(T a, T b) {
  return b == 0 ? T(0) : sub(a, mul(floordiv(a, b), b));
}

// NaN is the result if an operand is NaN.
template <class T> __device__ T min(T a, T b) {
  auto x = widen(a), y = widen(b);
  return x != x ? a : y != y ? b : y < x ? b : a;
}
template <class T> __device__ T max(T a, T b) {
  auto x = widen(a), y = widen(b);
  return x != x ? a : y != y ? b : x < y ? b : a;
}

#define GS_PLAIN(NAME, OP) \
  template <class T> __device__ T NAME(T a, T b) { return static_cast<T>(a OP b); }
GS_PLAIN(bitand_, &)
GS_PLAIN(bitor_, |)
GS_PLAIN(bitxor, ^)
GS_PLAIN(and_, &&)
GS_PLAIN(or_, ||)

// A count is unsigned; one of at least the number of bits shifts out all of them.
template <class T> __device__ T shl(T a, T count) {
  auto by = static_cast<std::make_unsigned_t<T>>(count);
  return by < 8 * sizeof(T) ? static_cast<T>(static_cast<uint64_t>(a) << by) : T(0);
}
template <class T> __device__ T shr(T a, T count) {
  auto by = static_cast<std::make_unsigned_t<T>>(count);
  if (by < 8 * sizeof(T)) return static_cast<T>(a >> by);
  return a < T(0) ? T(-1) : T(0);
}

#define GS_COMPARISON(NAME, OP) \
  template <class T> __device__ bool NAME(T a, T b) { return widen(a) OP widen(b); }
GS_COMPARISON(eq, ==)
GS_COMPARISON(ne, !=)
GS_COMPARISON(lt, <)
GS_COMPARISON(le, <=)
GS_COMPARISON(gt, >)
GS_COMPARISON(ge, >=)

template <class T> __device__ T neg(T x) {
  if constexpr (is_integer<T>) return sub(T(0), x);
  else return narrow<T>(-widen(x));
}
inline __device__ bool not_(bool x) { return !x; }
template <class T> __device__ T bitnot(T x) { return static_cast<T>(~x); }
template <class T> __device__ T select(bool condition, T a, T b) { return condition ? a : b; }

template <class T> __device__ T abs(T x) {
  if constexpr (is_integer<T>) return x < T(0) ? neg(x) : x;
  else return narrow<T>(::fabs(widen(x)));
}
#define GS_FUNCTION(NAME, FUNCTION) \
  template <class T> __device__ T NAME(T x) { return narrow<T>(::FUNCTION(widen(x))); }
GS_FUNCTION(sqrt, sqrt)
GS_FUNCTION(floor, floor)
GS_FUNCTION(ceil, ceil)
GS_FUNCTION(trunc, trunc)
GS_FUNCTION(round, rint)
// Rounds the fraction to 10 bits, ties away from zero. That of narrower floats has no more.
template <class T> __device__ T tf32(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if (sizeof(T) < 4 || x != x) return x;
  constexpr Bits one = 1, dropped = sizeof(T) == 8 ? 42 : 13;
  Bits bits;
  memcpy(&bits, &x, sizeof x);
  bits = (bits + (one << (dropped - 1))) & ~((one << dropped) - 1);
  memcpy(&x, &bits, sizeof x);
  return x;
}
template <class T> __device__ T fma(T a, T b, T c) { return ::fma(a, b, c); }
template <class T> __device__ T popcount(T x) {
  return __popcll(static_cast<std::make_unsigned_t<T>>(x));
}
template <class T> __device__ T ctz(T x) { return x == 0 ? T(8 * sizeof(T)) : T(__ffsll(x) - 1); }

// Floats out of the range of an integer saturate, NaN becomes 0, and a bool is whether a value is not 0.
template <class T, class S> __device__ T cast(S x) {
  if constexpr (std::is_same<T, S>::value) {
    return x;
  } else if constexpr (std::is_same<T, bool>::value) {
    return widen(x) != 0;
  } else if constexpr (is_half<T> && is_integer<S>) {
    // float would round an int32 once, and the half a second time.
    return narrow<T>(static_cast<double>(x));
  } else if constexpr (!is_integer<T>) {
    return narrow<T>(static_cast<std::conditional_t<std::is_same<S, double>::value, double, wide_t<T>>>(widen(x)));
  } else if constexpr (is_integer<S>) {
    return static_cast<T>(x);
  } else {
    auto value = widen(x);
    using F = decltype(value);
    // One more than the greatest integer is a power of two, so exact in F.
    F end = ::ldexp(F(1), 8 * sizeof(T) - is_signed<T>), low = is_signed<T> ? -end : F(0);
    if (value != value) return 0;
    if (value >= end) return static_cast<T>(~uint64_t(0) >> (64 - 8 * sizeof(T) + is_signed<T>));
    return value <= low ? static_cast<T>(is_signed<T> ? uint64_t(1) << (8 * sizeof(T) - 1) : 0)
                        : static_cast<T>(value);
  }
}

template <class T, class S> __device__ T bits(S x) {
  static_assert(sizeof(T) == sizeof(S), "a value is reinterpreted in as many bits");
  T y;
  memcpy(&y, &x, sizeof y);
  return y;
}

// --- vectors ------------------------------------------------------------------------------------

template <class T, int N> struct vec {
  T lanes[N];
  __device__ T& operator[](int i) { return lanes[i]; }
  __device__ const T& operator[](int i) const { return lanes[i]; }
};

#define GS_LANES for (int i = 0; i < N; ++i)
#define GS_UNARY(NAME)                                                   \
  template <class T, int N> __device__ auto NAME(const vec<T, N>& x) {   \
    vec<decltype(NAME(x[0])), N> y;                                      \
    GS_LANES y[i] = NAME(x[i]);                                          \
    return y;                                                            \
  }
#define GS_BINARY(NAME)                                                                        \
  template <class T, int N> __device__ auto NAME(const vec<T, N>& a, const vec<T, N>& b) {     \
    vec<decltype(NAME(a[0], b[0])), N> y;                                                      \
    GS_LANES y[i] = NAME(a[i], b[i]);                                                          \
    return y;                                                                                  \
  }
GS_UNARY(neg) GS_UNARY(not_) GS_UNARY(bitnot) GS_UNARY(abs) GS_UNARY(sqrt) GS_UNARY(floor)
GS_UNARY(ceil) GS_UNARY(trunc) GS_UNARY(tf32) GS_UNARY(round) GS_UNARY(popcount) GS_UNARY(ctz)
GS_BINARY(add) GS_BINARY(sub) GS_BINARY(mul) GS_BINARY(div) GS_BINARY(floordiv)
GS_BINARY(floormod) GS_BINARY(min) GS_BINARY(max) GS_BINARY(and_) GS_BINARY(or_)
GS_BINARY(bitand_) GS_BINARY(bitor_) GS_BINARY(bitxor) GS_BINARY(shl) GS_BINARY(shr)
GS_BINARY(eq) GS_BINARY(ne) GS_BINARY(lt) GS_BINARY(le) GS_BINARY(gt) GS_BINARY(ge)

template <class T, int N>
__device__ vec<T, N> fma(const vec<T, N>& a, const vec<T, N>& b, const vec<T, N>& c) {
  vec<T, N> y;
  GS_LANES y[i] = fma(a[i], b[i], c[i]);
  return y;
}
template <class T, int N>
__device__ vec<T, N> select(const vec<bool, N>& mask, const vec<T, N>& a, const vec<T, N>& b) {
  vec<T, N> y;
  GS_LANES y[i] = mask[i] ? a[i] : b[i];
  return y;
}
template <class T, int N>
__device__ vec<T, N> select(bool condition, const vec<T, N>& a, const vec<T, N>& b) {
  return condition ? a : b;
}
template <class T, class S, int N> __device__ vec<T, N> cast(const vec<S, N>& x) {
  vec<T, N> y;
  GS_LANES y[i] = cast<T>(x[i]);
  return y;
}
template <class T, class S, int N> __device__ vec<T, N> bits(const vec<S, N>& x) {
  vec<T, N> y;
  GS_LANES y[i] = bits<T>(x[i]);
  return y;
}
template <int N, class T> __device__ vec<T, N> broadcast(T x) {
  vec<T, N> y;
  GS_LANES y[i] = x;
  return y;
}
template <int N, class T> __device__ vec<T, N> ramp(T base, T stride) {
  vec<T, N> y;
  GS_LANES y[i] = add(base, mul(static_cast<T>(i), stride));
  return y;
}

#define GS_REDUCTION(NAME)                                                        \
  template <class T, int N> __device__ T reduce_##NAME(const vec<T, N>& x) {      \
    T result = x[0];                                                              \
    for (int i = 1; i < N; ++i) result = NAME(result, x[i]);                      \
    return result;                                                                \
  }
GS_REDUCTION(add) GS_REDUCTION(mul) GS_REDUCTION(min) GS_REDUCTION(max)
GS_REDUCTION(and_) GS_REDUCTION(or_)

// --- memory -------------------------------------------------------------------------------------

template <class T, int N>
__device__ vec<T, N> gather(const T* from, const vec<int64_t, N>& at) {
  vec<T, N> y;
  GS_LANES y[i] = from[at[i]];
  return y;
}
template <class T, int N>
__device__ vec<T, N> gather(
    const T* from, const vec<int64_t, N>& at, const vec<bool, N>& mask, const vec<T, N>& otherwise) {
  vec<T, N> y;
  GS_LANES y[i] = mask[i] ? from[at[i]] : otherwise[i];
  return y;
}
template <class T, int N>
__device__ void scatter(T* to, const vec<int64_t, N>& at, const vec<T, N>& x) {
  GS_LANES to[at[i]] = x[i];
}
template <class T, int N>
__device__ void scatter(T* to, const vec<int64_t, N>& at, const vec<T, N>& x, const vec<bool, N>& mask) {
  GS_LANES if (mask[i]) to[at[i]] = x[i];
}

// The type of an atomic function of CUDA for T: it has none for integers of 8 and 16 bits.
template <class T> using atomic_t = std::conditional_t<
    is_integer<T> && sizeof(T) == 8, std::conditional_t<is_signed<T>, long long, unsigned long long>, T>;
template <class T> constexpr bool is_word = is_integer<T> && sizeof(T) >= 4;
template <class T> constexpr bool has_atomic_add = is_word<T> || (sizeof(T) >= 4 && !is_integer<T>);

// Exchanges the word around an element until no other thread changed it between.
template <class T, class F> __device__ void exchange(T* at, F change) {
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;
  auto address = reinterpret_cast<uintptr_t>(at);
  auto word = reinterpret_cast<Word*>(address & ~(sizeof(Word) - 1));
  size_t offset = address & (sizeof(Word) - 1);
  Word seen = atomicCAS(word, Word(0), Word(0)), expected;
  do {
    expected = seen;
    T old;
    memcpy(&old, reinterpret_cast<char*>(&expected) + offset, sizeof old);
    T changed = change(old);
    Word wanted = expected;
    memcpy(reinterpret_cast<char*>(&wanted) + offset, &changed, sizeof changed);
    seen = atomicCAS(word, expected, wanted);
  } while (seen != expected);
}
template <class T> __device__ void atomic_add(T* at, T x) {
  if constexpr (is_word<T> && sizeof(T) == 8)
    // The low bits of unsigned sums are those of signed ones, for which CUDA has no function.
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(x));
  else if constexpr (has_atomic_add<T>)
    atomicAdd(at, x);
  else
    exchange(at, [=](T old) { return add(old, x); });
}
// Those of CUDA ignore NaN, so they are for integers alone.
template <class T> __device__ void atomic_min(T* at, T x) {
  if constexpr (is_word<T>) atomicMin(reinterpret_cast<atomic_t<T>*>(at), static_cast<atomic_t<T>>(x));
  else exchange(at, [=](T old) { return min(old, x); });
}
template <class T> __device__ void atomic_max(T* at, T x) {
  if constexpr (is_word<T>) atomicMax(reinterpret_cast<atomic_t<T>*>(at), static_cast<atomic_t<T>>(x));
  else exchange(at, [=](T old) { return max(old, x); });
}

// --- threads ------------------------------------------------------------------------------------

// The lanes of a warp in the group of `width` threads of this one; the last warp of a block may have fewer.
template <int width> __device__ unsigned group_lanes() {
  unsigned number = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned left = blockDim.x * blockDim.y * blockDim.z - (number & ~31u);
  unsigned group = width == 32 ? ~0u : ((1u << width % 32) - 1) << (number & 31u & -width);
  return left < 32 ? group & ((1u << left) - 1) : group;
}
// Exchanges each register of a value.
template <class T, class F> __device__ T shuffled(T x, F exchange) {
  unsigned words[(sizeof(T) + 3) / 4] = {};
  memcpy(words, &x, sizeof x);
  for (unsigned& word : words) word = exchange(word);
  memcpy(&x, words, sizeof x);
  return x;
}
template <int width, class T> __device__ T shuffle_xor(T x, int offset) {
  unsigned lanes = group_lanes<width>();
  return shuffled(x, [=](unsigned word) { return __shfl_xor_sync(lanes, word, offset, width); });
}
template <int width, class T> __device__ T shuffle_down(T x, int offset) {
  unsigned lanes = group_lanes<width>();
  return shuffled(x, [=](unsigned word) { return __shfl_down_sync(lanes, word, offset, width); });
}

// --- asynchronous copies ------------------------------------------------------------------------

// Arrays of callers are aligned to their elements only; a copy is to an address that is a multiple of its size.
template <int count, class T> __device__ void copy_async(T* target, const T* source) {
#if __CUDA_ARCH__ >= 800
  constexpr int size = count * sizeof(T);
  if (((reinterpret_cast<uintptr_t>(target) | reinterpret_cast<uintptr_t>(source)) & (size - 1)) == 0) {
    auto shared = static_cast<unsigned>(__cvta_generic_to_shared(target));
    auto global = __cvta_generic_to_global(source);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(shared), "l"(global), "n"(size) : "memory");
    return;
  }
#endif
  for (int number = 0; number < count; ++number) target[number] = source[number];
}
inline __device__ void commit_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending> __device__ void wait_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
#endif
}

}  // namespace gs
