import java.util.function.Function;
import java.util.function.Supplier;

/** A program whose points-to sets are known: tests/examples/test_java_points_to.py says what they are. */
public class Main {
    static class Box {
        Object content;

        void put(Object value) {
            content = value;
        }

        Object get() {
            return content;
        }
    }

    static class Cat {
        Cat friend;

        String name() {
            return "cat";
        }
    }

    static class Lion extends Cat {
        @Override
        String name() {
            return "lion";
        }
    }

    static class Trouble extends Exception {}

    interface Sound {
        default String loud() {
            return "roar";
        }
    }

    static class Horn implements Sound {}

    static Object shared = new Cat();

    static Object identity(Object value) {
        return value;
    }

    static String nameOf(Cat cat) {
        return cat.name();
    }

    // Two boxes hold two things: contexts by receiver tell them apart.
    static void boxes() {
        Box first = new Box();
        Box second = new Box();
        first.put(new Cat());
        second.put(new Horn());
        Cat cat = (Cat) first.get();
        Horn horn = (Horn) second.get();
        cat.name();
        horn.loud();
    }

    // Two calls of one static method: contexts by call tell them apart.
    static void calls() {
        Cat cat = (Cat) identity(new Cat());
        Horn horn = (Horn) identity(new Horn());
        nameOf(cat);
        nameOf(new Lion());
    }

    static void fail(boolean whether) throws Trouble {
        if (whether) {
            throw new Trouble();
        }
        throw new IllegalStateException();
    }

    static Object catching(boolean whether) {
        try {
            fail(whether);
        } catch (Trouble trouble) {
            return trouble;
        }
        return null;
    }

    static Object lambdas(Cat captured) {
        Supplier<Object> supplier = () -> captured;
        Function<Object, Object> function = Main::identity;
        Supplier<Box> maker = Box::new;
        Box box = maker.get();
        box.put(function.apply(supplier.get()));
        return box.get();
    }

    static Object[] arrays() {
        Object[][] grid = new Object[2][3];
        grid[0][1] = shared;
        Object[] row = grid[0];
        row[0] = row[1] == null ? new Horn() : row[1];
        return row;
    }

    static String friendOfFriend(Cat cat) {
        Cat friend = cat.friend;
        return friend.name();
    }

    static String secret() {
        return System.getenv("SECRET");
    }

    static String cleaned(String text) {
        return text;
    }

    static void print(String text) {
        System.out.println(text);
    }

    static void leak() {
        print("the secret is ".concat(secret().trim()));
        print(cleaned(secret()));
    }

    static void unreachable() {
        nameOf(null);
    }

    public static void main(String[] arguments) throws Trouble {
        boxes();
        calls();
        catching(arguments.length > 0);
        lambdas(new Lion());
        arrays();
        friendOfFriend(new Cat());
        leak();
    }
}
