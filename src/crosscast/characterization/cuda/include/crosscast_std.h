/* Of C++'s library, what type_traits, utility, array and initializer_list have for device code.
 * As with nvcc, every program has all of it, whichever headers it includes. */
#ifndef CROSSCAST_STD_H
#define CROSSCAST_STD_H

namespace std {
using ::size_t; using ::ptrdiff_t;
typedef decltype(nullptr) nullptr_t;

template <class T, T x> struct integral_constant {
  static constexpr T value = x;
  typedef T value_type;
  typedef integral_constant type;
  CC_MEMBER constexpr operator T() const { return x; }
  CC_MEMBER constexpr T operator()() const { return x; }
};
template <bool x> using bool_constant = integral_constant<bool, x>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

/* What is known of a type, or of two, by the compiler's functions. */
#define CC_TRAIT(NAME, ...)                                             \
  template <class T> struct NAME : bool_constant<(__VA_ARGS__)> {};     \
  template <class T> constexpr bool NAME##_v = (__VA_ARGS__);
CC_TRAIT(is_void, __is_void(T)) CC_TRAIT(is_integral, __is_integral(T)) CC_TRAIT(is_enum, __is_enum(T))
CC_TRAIT(is_floating_point, __is_floating_point(T) && sizeof(T) > 2) /* half is a class in CUDA */
CC_TRAIT(is_arithmetic, __is_integral(T) || is_floating_point<T>::value) CC_TRAIT(is_fundamental, __is_fundamental(T))
CC_TRAIT(is_scalar, __is_scalar(T)) CC_TRAIT(is_object, __is_object(T)) CC_TRAIT(is_class, __is_class(T))
CC_TRAIT(is_signed, __is_signed(T)) CC_TRAIT(is_unsigned, __is_unsigned(T)) CC_TRAIT(is_array, __is_array(T))
CC_TRAIT(is_const, __is_const(T)) CC_TRAIT(is_volatile, __is_volatile(T)) CC_TRAIT(is_pointer, __is_pointer(T))
CC_TRAIT(is_reference, __is_reference(T)) CC_TRAIT(is_lvalue_reference, __is_lvalue_reference(T))
CC_TRAIT(is_rvalue_reference, __is_rvalue_reference(T)) CC_TRAIT(is_function, __is_function(T))
CC_TRAIT(is_empty, __is_empty(T)) CC_TRAIT(is_trivial, __is_trivially_constructible(T) && __is_trivially_copyable(T))
CC_TRAIT(is_standard_layout, __is_standard_layout(T)) CC_TRAIT(is_pod, __is_pod(T))
CC_TRAIT(is_trivially_copyable, __is_trivially_copyable(T)) CC_TRAIT(is_union, __is_union(T))
CC_TRAIT(is_default_constructible, __is_constructible(T)) CC_TRAIT(is_null_pointer, __is_same(__remove_cv(T), nullptr_t))
#undef CC_TRAIT
#define CC_TRAIT(NAME, BUILTIN)                                               \
  template <class T, class U> struct NAME : bool_constant<BUILTIN(T, U)> {};  \
  template <class T, class U> constexpr bool NAME##_v = BUILTIN(T, U);
CC_TRAIT(is_same, __is_same) CC_TRAIT(is_base_of, __is_base_of) CC_TRAIT(is_convertible, __is_convertible_to)
CC_TRAIT(is_assignable, __is_assignable)
#undef CC_TRAIT
template <class T, class... A> struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <class T, class... A> constexpr bool is_constructible_v = __is_constructible(T, A...);

/* Types made of others. */
#define CC_TRANSFORMATION(NAME, ...)                          \
  template <class T> struct NAME { typedef __VA_ARGS__ type; }; \
  template <class T> using NAME##_t = typename NAME<T>::type;
CC_TRANSFORMATION(remove_const, __remove_const(T)) CC_TRANSFORMATION(remove_volatile, __remove_volatile(T))
CC_TRANSFORMATION(remove_cv, __remove_cv(T)) CC_TRANSFORMATION(remove_reference, __remove_reference_t(T))
CC_TRANSFORMATION(remove_cvref, __remove_cvref(T)) CC_TRANSFORMATION(remove_pointer, __remove_pointer(T))
CC_TRANSFORMATION(remove_extent, __remove_extent(T)) CC_TRANSFORMATION(decay, __decay(T))
CC_TRANSFORMATION(add_const, const T) CC_TRANSFORMATION(add_volatile, volatile T)
CC_TRANSFORMATION(add_pointer, __add_pointer(T)) CC_TRANSFORMATION(type_identity, T)
CC_TRANSFORMATION(add_lvalue_reference, __add_lvalue_reference(T))
CC_TRANSFORMATION(add_rvalue_reference, __add_rvalue_reference(T))
CC_TRANSFORMATION(make_signed, __make_signed(T)) CC_TRANSFORMATION(make_unsigned, __make_unsigned(T))
CC_TRANSFORMATION(underlying_type, __underlying_type(T))
#undef CC_TRANSFORMATION
template <bool, class T, class> struct conditional { typedef T type; };
template <class T, class U> struct conditional<false, T, U> { typedef U type; };
template <bool x, class T, class U> using conditional_t = typename conditional<x, T, U>::type;
template <bool x, class T = void> using enable_if = cc_enable<x, T>;
template <bool x, class T = void> using enable_if_t = typename cc_enable<x, T>::type;
template <class...> using void_t = void;
template <class T> CC_MEMBER __add_rvalue_reference(T) declval() noexcept;
template <class... T> struct common_type {};
template <class T> struct common_type<T> { typedef __decay(T) type; };
template <class T, class U> struct common_type<T, U> {
  typedef __decay(decltype(false ? declval<T>() : declval<U>())) type;
};
template <class T, class U, class... Rest> struct common_type<T, U, Rest...> {
  typedef typename common_type<typename common_type<T, U>::type, Rest...>::type type;
};
template <class... T> using common_type_t = typename common_type<T...>::type;
template <class F, class... A> struct invoke_result { typedef decltype(declval<F>()(declval<A>()...)) type; };
template <class F, class... A> using invoke_result_t = typename invoke_result<F, A...>::type;
template <class... T> struct conjunction : true_type {};
template <class T, class... Rest>
struct conjunction<T, Rest...> : conditional_t<(bool)T::value, conjunction<Rest...>, false_type> {};
template <class... T> struct disjunction : false_type {};
template <class T, class... Rest>
struct disjunction<T, Rest...> : conditional_t<(bool)T::value, true_type, disjunction<Rest...>> {};
template <class T> struct negation : bool_constant<!T::value> {};
template <class... T> constexpr bool conjunction_v = conjunction<T...>::value;
template <class... T> constexpr bool disjunction_v = disjunction<T...>::value;
template <class T> constexpr bool negation_v = !T::value;

/* Values. */
template <class T> CC_MEMBER constexpr T &&forward(__remove_reference_t(T) &x) noexcept { return static_cast<T &&>(x); }
template <class T> CC_MEMBER constexpr T &&forward(__remove_reference_t(T) &&x) noexcept { return static_cast<T &&>(x); }
template <class T> CC_MEMBER constexpr __remove_reference_t(T) &&move(T &&x) noexcept {
  return static_cast<__remove_reference_t(T) &&>(x);
}
template <class T, class U = T> CC_MEMBER constexpr T exchange(T &x, U &&value) {
  T old = move(x);
  x = forward<U>(value);
  return old;
}
template <class T, class U> struct pair {
  typedef T first_type;
  typedef U second_type;
  T first;
  U second;
  CC_MEMBER constexpr pair() : first(), second() {}
  CC_MEMBER constexpr pair(const T &x, const U &y) : first(x), second(y) {}
};
template <class T, class U> CC_MEMBER constexpr pair<__decay(T), __decay(U)> make_pair(T &&x, U &&y) { return {x, y}; }

template <class T, T... x> struct integer_sequence {
  typedef T value_type;
  CC_MEMBER static constexpr size_t size() { return sizeof...(x); }
};
template <size_t... x> using index_sequence = integer_sequence<size_t, x...>;
template <class T, T n> using make_integer_sequence = __make_integer_seq<integer_sequence, T, n>;
template <size_t n> using make_index_sequence = make_integer_sequence<size_t, n>;
template <class... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;

template <class T, size_t n> struct array {
  typedef T value_type;
  T values[n ? n : 1];
  CC_MEMBER constexpr T &operator[](size_t k) { return values[k]; }
  CC_MEMBER constexpr const T &operator[](size_t k) const { return values[k]; }
  CC_MEMBER constexpr T *data() { return values; }
  CC_MEMBER constexpr const T *data() const { return values; }
  CC_MEMBER constexpr T *begin() { return values; }
  CC_MEMBER constexpr const T *begin() const { return values; }
  CC_MEMBER constexpr T *end() { return values + n; }
  CC_MEMBER constexpr const T *end() const { return values + n; }
  CC_MEMBER static constexpr size_t size() { return n; }
};

/* The compiler makes it of what stands in braces. */
template <class T> class initializer_list {
  const T *values;
  size_t n;

 public:
  CC_MEMBER constexpr const T *begin() const { return values; }
  CC_MEMBER constexpr const T *end() const { return values + n; }
  CC_MEMBER constexpr size_t size() const { return n; }
};
template <class T> CC_MEMBER constexpr T min(initializer_list<T> some) {
  T found = *some.begin();
  for (const T &x : some) found = min(x, found);
  return found;
}
template <class T> CC_MEMBER constexpr T max(initializer_list<T> some) {
  T found = *some.begin();
  for (const T &x : some) found = max(x, found);
  return found;
}
}

/* The same names in libcu++. */
namespace cuda {
namespace std {
using namespace ::std;
}
}

#endif
